"""Draws rooms as images."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import BadOption
from agentgyms.envs.sokoban import tiles
from agentgyms.envs.sokoban.engine import (
    BOX,
    BOX_ON_TARGET,
    PLAYER,
    PLAYER_ON_TARGET,
    Room,
    State,
    cells_of,
    tiles_of,
)

Picture = NDArray[np.uint8]

MAX_CELL: Final = 256
"""Maximum pixels of a cell's side."""

LEGEND: Final = (
    "brick: wall; plain slab: floor; red diamond: target; wooden crate: box; green crate: box on a "
    "target; person in a blue shirt: you (a red diamond's corners show if you stand on a target)"
)

TINY_COLOURS: Final = np.array(
    [
        (0, 0, 0),
        (243, 248, 238),
        (254, 126, 125),
        (254, 95, 56),
        (142, 121, 56),
        (160, 212, 56),
        (219, 212, 56),
    ],
    np.uint8,
)
"""gym-sokoban's colours of the tiles in its picture of one pixel per cell. Shape [7, 3]."""

_CACHED_ROOMS: Final = 128
_CACHED_PIXELS: Final = 512 * 512
"""Larger images are not cached, so that the cache takes at most 100 MB."""


def check_cell(pixels: Any) -> int:
    """Return the side of a cell in pixels, a multiple of 16 up to `MAX_CELL`."""
    whole = isinstance(pixels, int) and not isinstance(pixels, bool)
    if not whole or not 0 < pixels <= MAX_CELL or pixels % tiles.SIDE:
        raise BadOption(f"cell_pixels must be a multiple of 16 up to {MAX_CELL}, got {pixels!r}")
    return int(pixels)


def draw(state: State, cell_pixels: int = tiles.SIDE) -> Picture:
    """Return the picture of a state, RGB [H * cell_pixels, W * cell_pixels, 3].

    The side of a cell is a multiple of 16 pixels.
    """
    room, player = state.room, state.player
    large = room.height * room.width * cell_pixels**2 > _CACHED_PIXELS
    make = _empty_room.__wrapped__ if large else _empty_room
    empty, places, atlas = make(room, cell_pixels)
    picture = empty.copy()
    for cell in cells_of(state.boxes):
        picture[places[cell]] = atlas[BOX_ON_TARGET if room.targets >> cell & 1 else BOX]
    picture[places[player]] = atlas[PLAYER_ON_TARGET if room.targets >> player & 1 else PLAYER]
    return picture


def draw_tiny(state: State, scale: int = 1) -> Picture:
    """Return gym-sokoban's `tiny_rgb_array`: a square of `scale` pixels a side for each cell."""
    picture: Picture = TINY_COLOURS[np.array(tiles_of(state))]
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


@lru_cache(maxsize=8)
def _atlas(cell_pixels: int) -> Picture:
    """Return the tiles enlarged. Shape [7, cell_pixels, cell_pixels, 3]."""
    times = cell_pixels // tiles.SIDE
    return tiles.atlas().repeat(times, axis=1).repeat(times, axis=2)


Place = tuple[slice, slice]


@lru_cache(maxsize=_CACHED_ROOMS)
def _empty_room(room: Room, cell_pixels: int) -> tuple[Picture, list[Place], list[Picture]]:
    """Return the picture of floor and walls, each cell's place in it by its bit, and the tiles."""
    side, atlas = cell_pixels, _atlas(cell_pixels)
    ground = np.array(room.ground).reshape(room.height + 1, room.width + 1)[1:, :-1]
    grid = atlas[ground]  # [H, W, side, side, 3]
    picture = np.ascontiguousarray(grid.swapaxes(1, 2))
    corners = [room.position(cell) for cell in range((room.height + 1) * (room.width + 1))]
    places = [
        (slice(row * side, (row + 1) * side), slice(column * side, (column + 1) * side))
        for row, column in corners
    ]
    return picture.reshape(room.height * side, room.width * side, 3), places, list(atlas)
