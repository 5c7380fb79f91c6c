"""The Sokoban environment with images."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict

from agentgyms.core.errors import BadOption
from agentgyms.core.images import MAX_PIXELS, Image
from agentgyms.core.outcome import MAX_OBSERVATION, Observation
from agentgyms.core.spaces import UnicodeText
from agentgyms.envs.sokoban import image, text
from agentgyms.envs.sokoban.engine import Room
from agentgyms.envs.sokoban.env import SokobanEnv
from agentgyms.envs.sokoban.options import check_size

_CAPTION = "The picture shows the room from above."


class VisualSokobanEnv(SokobanEnv):
    """Sokoban in pictures; rooms, rules, rewards and arguments are those of `SokobanEnv`.

    The observation is `{"text": str, "image": uint8 [H, W, 3]}`; the text does not show the room.

    | argument | default | meaning |
    |---|---|---|
    | `cell_pixels` | 48 | side of a cell in pixels, a multiple of 16 |
    | `grid` | `False` | put the grid in characters (`text_format`) into the text as well |
    """

    def __init__(self, *, cell_pixels: int = 48, grid: bool = False, **arguments: Any) -> None:
        self._cell_pixels = image.check_cell(cell_pixels)
        super().__init__(**arguments)
        if not isinstance(grid, bool):
            raise BadOption(f"grid must be True or False, got {grid!r}")
        self._grid = grid
        self._rows, self._columns = self._shape(arguments)
        sides = (self._rows * cell_pixels, self._columns * cell_pixels, 3)
        if sides[0] * sides[1] > MAX_PIXELS:
            raise BadOption(
                f"cell_pixels={cell_pixels} makes pictures of {sides[0]} x {sides[1]} pixels: take "
                f"less, as a picture has at most {MAX_PIXELS} pixels"
            )
        self.observation_space = Dict(
            text=UnicodeText(MAX_OBSERVATION), image=Box(0, 255, sides, np.uint8)
        )

    def _shape(self, arguments: dict[str, Any]) -> tuple[int, int]:
        """Return rows and columns of all rooms: the arguments', or those of the first level."""
        if arguments.get("levels") is None:
            return check_size(arguments.get("size", 6))
        room = self._room(self.tasks[0])
        return room.height, room.width

    def _start_room(self, room: Room) -> None:
        if (room.height, room.width) != (self._rows, self._columns):
            raise BadOption(
                f"the level has {room.height} x {room.width} cells, but the pictures here have "
                f"{self._rows} x {self._columns} as the first level: use levels of one size"
            )
        super()._start_room(room)

    def render(self) -> str | Image | None:
        """Return the text grid in mode `ansi`, and the agent's image in `rgb_array`."""
        shown = super().render()
        return text.grid_with_legend(self._state) if isinstance(shown, str) else shown

    def draw(self) -> Image:
        """Return the agent's image."""
        return image.draw(self._state, self._cell_pixels)

    def _observe(self) -> Observation:
        caption = f"{_CAPTION}\n{self._text(self._state)}" if self._grid else _CAPTION
        return {"text": caption, "image": self.draw()}
