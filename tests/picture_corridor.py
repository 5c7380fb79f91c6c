"""Corridors that draw their state: a real environment with images, for tests."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from agentgyms.core.outcome import MAX_OBSERVATION, Outcome
from agentgyms.core.spaces import UnicodeText
from agentgyms.envs.corridor import CorridorEnv

PICTURES = "tests/Picture-v0"
ENTRY = "picture_corridor:PictureCorridor"
_CELL, _CELLS = 8, 8
_FLOOR, _AGENT, _KEY, _DOOR, _OPEN = (
    np.array(colour, np.uint8)
    for colour in ((9, 9, 9), (20, 200, 40), (250, 220, 0), (120, 60, 10), (255, 255, 255))
)


class PictureCorridor(CorridorEnv):
    """A corridor seen from above: the agent green, the key yellow, the door brown or white."""

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.observation_space = gym.spaces.Dict(
            text=UnicodeText(MAX_OBSERVATION),
            image=gym.spaces.Box(0, 255, (_CELL, _CELL * _CELLS, 3), np.uint8),
        )

    def _outcome(self, text: str, *args: Any, **kwargs: Any) -> Outcome:
        outcome = super()._outcome(text, *args, **kwargs)
        return outcome._replace(observation={"text": text, "image": self.draw()})

    def draw(self) -> np.ndarray:
        """Return the corridor, a cell for each place."""
        image = np.zeros((_CELL, _CELL * _CELLS, 3), np.uint8)
        for cell in range(self._length + 1):
            colour = _FLOOR
            if cell == self._length:
                colour = _OPEN if self._open else _DOOR
            if cell == self._key_at and not self._has_key:
                colour = _KEY
            image[:, cell * _CELL : (cell + 1) * _CELL] = colour
        start = self._position * _CELL + 2
        image[2:-2, start : start + _CELL - 4] = _AGENT
        return image


class ReplayedPictures(PictureCorridor):
    """The same without `save`, so that its snapshots replay."""

    def save(self) -> Any:
        """Save nothing."""
        return None

    def _outcome(self, text: str, *args: Any, **kwargs: Any) -> Outcome:
        outcome = super()._outcome(text, *args, **kwargs)
        state = [self._length, self._key_at, self._position, self._has_key, self._open]
        return outcome._replace(state_key=str(state))


if PICTURES not in gym.registry:
    gym.register(PICTURES, entry_point=PictureCorridor, disable_env_checker=True)
