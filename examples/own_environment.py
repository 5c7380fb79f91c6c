"""Makes an environment, checks it and plays a group of it. More: docs/own_environment.md.

pip install -e .
python examples/own_environment.py
"""

import gymnasium as gym

import agentgyms
from agentgyms import Feedback, Outcome, Task, TaskSet, TextEnv, keys, testing

ACTIONS = ["fill a", "fill b", "empty a", "empty b", "pour a b", "pour b a"]


class JugsEnv(TextEnv):
    """Measure water with two jugs, a and b."""

    default_max_turns = 12

    def load_tasks(self):
        return TaskSet(self.split, [Task(f"jugs-{n}", "jugs") for n in ("3-5-4", "4-7-5")])

    def goal(self, task):
        return f"measure {task.task_id[-1]} litres in one jug"

    def begin(self, task, rng):
        a, b, self.wanted = map(int, task.task_id.split("-")[1:])
        self.size, self.water = {"a": a, "b": b}, {"a": 0, "b": 0}
        return self.outcome()

    def act(self, action):
        if action not in ACTIONS:
            wrong = {"feedback": Feedback.MALFORMED, "feedback_text": "no such command"}
            return self.outcome(action_key=keys.INVALID_ACTION, **wrong)
        verb, jug, *into = action.split()
        moved = {"fill": self.water[jug] - self.size[jug], "empty": self.water[jug]}.get(verb)
        if into:
            moved = min(self.water[jug], self.size[into[0]] - self.water[into[0]])
            self.water[into[0]] += moved
        self.water[jug] -= moved
        return self.outcome(action_key=action)

    def outcome(self, **about):
        text = " ".join(f"Jug {j} holds {self.water[j]} of {self.size[j]} litres." for j in "ab")
        won = self.wanted in self.water.values()
        state = keys.state_key(self.size, self.water, self.wanted)
        result = {"reward": float(won), "terminated": won, "score": float(won), "success": won}
        legal = {"admissible": ACTIONS, "admissible_complete": True}
        return Outcome(text, state, **result, **legal, **about)


gym.register("mine/Jugs-v0", JugsEnv, disable_env_checker=True)
testing.check_env(lambda: gym.make("mine/Jugs-v0"))
with agentgyms.make_group("mine/Jugs-v0", 2) as group:  # two rollouts that start in one state
    group.reset(seed=0, options={"task_id": "jugs-3-5-4"})
    plan = ["fill b", "pour b a", "empty a", "pour b a", "fill b", "pour b a"]
    steps = [group.step([action, "fill a"]) for action in plan]
    print("\n".join(f"{text} Reward {reward:.0f}." for text, reward, *_ in steps[-1]))
