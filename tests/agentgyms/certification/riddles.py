"""A sound environment, `mine/Riddle-v0`, and broken ones: each breaks one promise."""

from itertools import count

import gymnasium as gym

from agentgyms import Feedback, Outcome, Task, TaskSet, TextEnv, keys

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron")


class RiddleEnv(TextEnv):
    """Ask `ask first` or `ask second` for the halves of a word, then `answer[word]`."""

    default_max_turns = 6

    def load_tasks(self):
        return TaskSet(self.split, [Task(f"riddle-{i}", "riddle") for i in range(len(WORDS))])

    def begin(self, task, rng):
        self.word, self.asked, self.won = self.choose(task), [], False
        return self.outcome(self.greeting())

    def choose(self, task):
        return WORDS[int(task.task_id[-1])]

    def greeting(self):
        return "I keep a word."

    def act(self, action):
        action = action.strip()
        if action in ("ask first", "ask second"):
            known = action in self.asked
            self.asked = sorted({*self.asked, action})
            half = self.word[:2] if action == "ask first" else self.word[2:]
            feedback = Feedback.NO_EFFECT if known else Feedback.OK
            return self.outcome(f"One half is -{half}-.", action, feedback)
        if not action.startswith("answer["):
            return self.outcome(
                "What?", keys.INVALID_ACTION, Feedback.MALFORMED, "ask or answer", self.paid(action)
            )
        self.won = self.is_right(action)
        return self.outcome("That is it." if self.won else "No.", action, reward=self.pay())

    def is_right(self, action):
        return action == f"answer[{self.word}]"

    def pay(self):
        return float(self.won)

    def paid(self, action):
        return 0.0

    def expert_actions(self):
        left = [ask for ask in ("ask first", "ask second") if ask not in self.asked]
        return {"best": left[0] if left else f"answer[{self.word}]"}

    def solution(self):
        return {**self.expert_actions(), "golden": [self.word]}

    def outcome(self, text, action_key="", feedback=Feedback.OK, reason="", reward=0.0):
        return Outcome(
            observation=text,
            state_key=keys.state_key(self.word, self.asked, self.won),
            reward=reward,
            terminated=self.won,
            admissible=["ask first", "ask second", "answer[<word>]"],
            action_key=action_key,
            feedback=feedback,
            feedback_text=reason,
            score=float(self.won),
            success=self.won,
        )


class LeakyEnv(RiddleEnv):
    """Says the word when it greets."""

    def greeting(self):
        return f"I keep a word (debug: {self.word})."


class TalkingEnv(RiddleEnv):
    """Shows more to who may see solutions."""

    def greeting(self):
        return f"I keep a word of {len(self.word)} letters." if self.oracle else "I keep a word."


class ForgedEnv(RiddleEnv):
    """Believes whoever says success."""

    def paid(self, action):
        self.won = "success" in action
        return float(self.won)


class ConstantEnv(RiddleEnv):
    """Keeps one word for every task."""

    def choose(self, task):
        return WORDS[0]


class UnfairEnv(RiddleEnv):
    """Has a task that no answer solves."""

    def is_right(self, action):
        return super().is_right(action) and self.word != "fjord"


class ForgetfulEnv(RiddleEnv):
    """Greets by a counter of the process."""

    greetings = count()

    def greeting(self):
        return f"I keep a word, the {next(self.greetings)}th one."


class UnorderedEnv(RiddleEnv):
    """Greets in the order of a set, which each process has its own of."""

    def greeting(self):
        return f"I keep one of {' '.join(set(map(str, range(1000, 1064))))}."


class ChattyEnv(RiddleEnv):
    """Pays for questions and not for the word."""

    def act(self, action):
        outcome = super().act(action)
        asked = outcome.action_key.startswith("ask")
        return outcome._replace(reward=float(asked))


class NoisyEnv(RiddleEnv):
    """Pays for wrong answers as it pays for right ones, and ends."""

    def act(self, action):
        outcome = super().act(action)
        ended = outcome.action_key.startswith("answer[")
        return outcome._replace(terminated=ended, reward=float(ended))


class RaisingEnv(RiddleEnv):
    """Cannot take an empty action."""

    def act(self, action):
        return super().act(action[0] + action[1:])


class UnsolvedEnv(RiddleEnv):
    """Has no expert."""

    expert_actions = TextEnv.expert_actions
    solution = TextEnv.solution


for kind in (RiddleEnv, *RiddleEnv.__subclasses__()):
    gym.register(f"mine/{kind.__name__[:-3]}-v0", kind, disable_env_checker=True)
