"""A dialogue of two seats, both played by the caller: whoever says the higher number wins."""

import math

import gymnasium as gym

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.tasks import Task, TaskSet

MEETING = "test/Meeting-v0"
ROUNDS = 3


class MeetingEnv(TextEnv):
    """Say a number in each of three rounds; every seat reads what came since it last spoke.

    `seat` of the task id is the learner's; seat 0 begins. The score is the learner's share of the
    numbers. An episode that somebody ends with `unrated` has no score, and one that somebody ends
    with `leave` is over.
    """

    default_max_turns = 12
    splits = ("train", "valid", "test")

    def __init__(self, *, alone=False, **kwargs):
        super().__init__(**kwargs)
        self._alone = alone
        self.parties = {"partner": "echo-1" if alone else "self", "judge": "counter-1"}

    def load_tasks(self):
        ids = [f"{self.split}-{i}/{seat}" for i in range(2) for seat in (0, 1)]
        return TaskSet(self.split, [Task(task_id, "numbers") for task_id in ids])

    def begin(self, task, rng):
        self._seat, self._said, self._end = int(task.task_id[-1]), [], ""
        self._bonus = int(rng.integers(10))
        self._answer()
        return self._outcome()

    def goal(self, task):
        return self._want(self._seat)

    def act(self, action):
        if action in ("leave", "unrated"):
            self._end = action
        else:
            if not action.isdigit():
                return self._outcome(keys.INVALID_ACTION, Feedback.MALFORMED)
            self._said.append(int(action))
            self._answer()
        return self._outcome(action)

    def save(self):
        return [self._seat, self._said, self._end, self._bonus]

    def load(self, task, state):
        self._seat, self._said, self._end, self._bonus = state
        self._said = list(self._said)

    def expert_actions(self):
        return {"best": "9"}

    def _answer(self):
        while self._alone and not self._over and self._acting != self._seat:
            self._said.append(1)

    @property
    def _acting(self):
        return self._seat if self._over else len(self._said) % 2

    @property
    def _over(self):
        return bool(self._end) or len(self._said) == 2 * ROUNDS

    @staticmethod
    def _want(seat):
        return f"seat {seat}: say more than the other one"

    def _seen(self, seat):
        mine = [i for i in range(len(self._said)) if i % 2 == seat]
        start = "" if mine else f"You are seat {seat}.\n"
        lines = [f"Turn #{i}: {n}" for i, n in enumerate(self._said)][mine[-1] if mine else 0 :]
        return start + "\n".join(lines)

    def _outcome(self, action_key="", feedback=Feedback.OK):
        seat, over = self._acting, self._over
        own, total = sum(self._said[self._seat :: 2]), sum(self._said)
        score = math.nan if self._end == "unrated" else (own / total if over and total else 0.0)
        return Outcome(
            observation=self._seen(seat),
            state_key=keys.state_key("meeting", self.save()),
            reward=score if over else 0.125 * (seat != self._seat),
            terminated=over,
            admissible=("1", "5", "9", "leave"),
            admissible_complete=False,
            action_key=action_key,
            feedback=feedback,
            score=score,
            success=score > 0.5,
            goal=self._want(seat),
            metrics={
                "partner_turn": float(seat != self._seat),
                "model_calls": 2.0,
                "model_prompt_tokens": 30.0,
                "model_response_tokens": 4.0,
                "cost": 0.25 if self._bonus < 9 else math.nan,
            },
        )


if MEETING not in gym.registry:
    gym.register(MEETING, MeetingEnv)
