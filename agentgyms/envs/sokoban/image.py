"""Draws rooms as images; their tiles are drawn by formulas on 16 x 16 pixels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import BadOption
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

SIDE: Final = 16

_MORTAR: Final = (72, 62, 66)
_BRICK: Final = (134, 84, 74)
_BRICK_LIGHT: Final = (160, 104, 90)
_FLOOR: Final = (226, 219, 201)
_FLOOR_LINE: Final = (210, 202, 182)
_TARGET: Final = (214, 64, 58)
_WOOD: Final = (198, 146, 74)
_WOOD_DARK: Final = (120, 80, 34)
_DONE: Final = (112, 176, 84)
_DONE_DARK: Final = (50, 104, 40)
_SKIN: Final = (244, 202, 160)
_HAIR: Final = (58, 44, 40)
_SHIRT: Final = (46, 102, 188)
_TROUSERS: Final = (38, 48, 84)

_ROW, _COLUMN = np.mgrid[0:SIDE, 0:SIDE]


def _filled(colour: tuple[int, int, int]) -> Picture:
    return np.full((SIDE, SIDE, 3), colour, np.uint8)


def _inside(top: int, left: int, bottom: int, right: int) -> NDArray[np.bool_]:
    """Return a rectangle, its last row and column included."""
    inside: NDArray[np.bool_] = (
        (_ROW >= top) & (_ROW <= bottom) & (_COLUMN >= left) & (_COLUMN <= right)  # noqa: SIM300
    )
    return inside


def wall() -> Picture:
    """Return four courses of bricks."""
    picture = _filled(_BRICK)
    course = _ROW // 4
    picture[_ROW % 4 == 0] = _BRICK_LIGHT
    picture[_ROW % 4 == 3] = _MORTAR
    picture[(_COLUMN + 4 * (course % 2)) % 8 == 7] = _MORTAR
    return picture


def floor() -> Picture:
    """Return a plain slab with a seam on two sides."""
    picture = _filled(_FLOOR)
    picture[(_ROW == SIDE - 1) | (_COLUMN == SIDE - 1)] = _FLOOR_LINE
    return picture


def target() -> Picture:
    """Return floor with a red diamond on it."""
    picture = floor()
    away = np.abs(2 * _ROW - 15) + np.abs(2 * _COLUMN - 15)
    picture[(away <= 12) & (away > 6)] = _TARGET
    picture[away <= 2] = _TARGET
    return picture


def _crate(wood: tuple[int, int, int], edge: tuple[int, int, int]) -> Picture:
    picture = floor()
    picture[_inside(1, 1, 14, 14)] = edge
    picture[_inside(2, 2, 13, 13)] = wood
    picture[_inside(4, 4, 11, 11)] = edge
    picture[_inside(5, 5, 10, 10)] = wood
    cross = (np.abs(_ROW - _COLUMN) <= 1) | (np.abs(_ROW + _COLUMN - 15) <= 1)
    picture[_inside(4, 4, 11, 11) & cross] = edge
    return picture


def _person(ground: Picture) -> Picture:
    picture = ground.copy()
    picture[_inside(1, 5, 5, 10)] = _SKIN
    picture[_inside(1, 5, 2, 10)] = _HAIR
    picture[(_ROW == 4) & ((_COLUMN == 6) | (_COLUMN == 9))] = _HAIR
    picture[_inside(6, 4, 10, 11)] = _SHIRT
    picture[_inside(6, 3, 9, 3) | _inside(6, 12, 9, 12)] = _SHIRT
    picture[_inside(10, 3, 10, 3) | _inside(10, 12, 10, 12)] = _SKIN
    picture[_inside(11, 4, 14, 6) | _inside(11, 9, 14, 11)] = _TROUSERS
    picture[_inside(11, 6, 11, 9)] = _TROUSERS
    return picture


def player_on_target() -> Picture:
    """Return a person before a red diamond, whose corners show."""
    ground = floor()
    away = np.abs(2 * _ROW - 15) + np.abs(2 * _COLUMN - 15)
    ground[(away <= 18) & (away > 12)] = _TARGET
    return _person(ground)


def atlas() -> Picture:
    """Return all tiles by number. Shape [7, 16, 16, 3]."""
    crates = _crate(_DONE, _DONE_DARK), _crate(_WOOD, _WOOD_DARK)
    return np.stack([wall(), floor(), target(), *crates, _person(floor()), player_on_target()])


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
    if not whole or not 0 < pixels <= MAX_CELL or pixels % SIDE:
        raise BadOption(f"cell_pixels must be a multiple of 16 up to {MAX_CELL}, got {pixels!r}")
    return int(pixels)


def draw(state: State, cell_pixels: int = SIDE) -> Picture:
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
    times = cell_pixels // SIDE
    return atlas().repeat(times, axis=1).repeat(times, axis=2)


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
