"""An environment whose text says nothing: a red lamp shines at the left or at the right."""

import gymnasium as gym
import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.tasks import Task, TaskSet

LAMPS = "test/Lamps-v0"
SIDE = 32
SIDES = ("left", "right")


def picture(side, shade=0):
    """A red square on one side of a dark image, 32 pixels high and 64 wide."""
    image = np.full((SIDE, 2 * SIDE, 3), shade, np.uint8)
    start = SIDE * SIDES.index(side)
    image[:, start : start + SIDE] = (255, 40, 30)
    return image


class LampsEnv(TextEnv):
    """Say `left` or `right`, where the lamp is, three times."""

    default_max_turns = 4
    splits = ("train", "valid_seen")

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        box = gym.spaces.Box(0, 255, (SIDE, 2 * SIDE, 3), np.uint8)
        self.observation_space = gym.spaces.Dict({"text": self.observation_space, "image": box})

    def load_tasks(self):
        return TaskSet(self.split, [Task(f"{self.split}/{i:02d}", "lamps") for i in range(8)])

    def begin(self, task, rng):
        self._sides = [SIDES[int(i)] for i in rng.integers(0, 2, 4)]
        self._hits = 0
        return self._outcome()

    def act(self, action):
        if action not in SIDES:
            return self._outcome(keys.INVALID_ACTION, Feedback.MALFORMED)
        hit = action == self._sides[self._hits]
        self._hits += hit
        return self._outcome(action, Feedback.OK if hit else Feedback.NO_EFFECT)

    def goal(self, task):
        return "touch the lamps"

    def save(self):
        return [self._sides, self._hits]

    def load(self, task, state):
        self._sides, self._hits = state

    def expert_actions(self):
        return {"best": self._sides[self._hits]}

    def _outcome(self, action_key="", feedback=Feedback.OK):
        done = self._hits == 3
        return Outcome(
            observation={"text": "A lamp shines.", "image": picture(self._sides[self._hits])},
            state_key=keys.state_key("lamps", self.save()),
            reward=float(done),
            terminated=done,
            admissible=SIDES,
            admissible_complete=True,
            action_key=action_key,
            feedback=feedback,
            score=self._hits / 3,
            success=done,
        )


if LAMPS not in gym.registry:
    gym.register(LAMPS, LampsEnv)
