"""Retrograde search: solution distances of all states of many small rooms at once.

For every way to place the boxes, the player's cells are the bits of one integer, so that a step of
all players in all rooms is a few array operations. Rooms are given without outer walls;
there are h rows, w columns, R rooms, B boxes, M masks (ways to place the boxes), D distances.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Boards:
    """Tables shared by all rooms of one size and number of boxes."""

    height: int  # h
    width: int  # w
    # The ways to place the boxes, in the narrowest unsigned type of h * w bits [M].
    masks: NDArray[Any]
    cells: NDArray[np.int64]  # the boxes' cells [M, B]
    pulls: tuple[Pull, ...]  # for each direction and box, the reversed pushes

    @property
    def num_masks(self) -> int:
        """M."""
        return len(self.masks)


class Pull(NamedTuple):
    """Reversed pushes of one box in one direction."""

    before: NDArray[np.int64]  # indices of the masks before the push
    after: NDArray[np.int64]  # indices of the masks after it
    player_after: NDArray[Any]  # the player's cell after it, as a bit: where the box was
    player_before: NDArray[Any]  # the player's cell before it, as a bit


class Starts(NamedTuple):
    """Initial states, for the rooms that have one."""

    rows: NDArray[np.int64]  # indices of the rooms [S]
    boxes: NDArray[np.bool_]  # inner cells with a box [S, h * w], True where one is
    player: NDArray[np.bool_]  # inner cell of the player [S, h * w], True where it is
    moves: NDArray[np.int64]  # length of the shortest solution [S]


@lru_cache(maxsize=8)
def boards_for(height: int, width: int, boxes: int) -> Boards:
    """Return the tables for a number of inner rows, inner columns and boxes."""
    cells = height * width
    kind = np.dtype(f"u{next(size for size in (2, 4, 8) if 8 * size >= cells)}")
    placed = np.array(list(itertools.combinations(range(cells), boxes)), np.int64)
    bits = kind.type(1) << placed.astype(kind)
    masks = np.bitwise_or.reduce(bits, axis=1)
    order = np.argsort(masks)
    masks, placed = masks[order], placed[order]
    shape = (height, width)
    pulls = tuple(
        _pull(masks, placed[:, box], step, shape)
        for box in range(boxes)
        for step in ((-1, 0), (1, 0), (0, -1), (0, 1))
    )
    return Boards(height, width, masks, placed, pulls)


def _pull(
    masks: NDArray[Any], box: NDArray[np.int64], step: tuple[int, int], shape: tuple[int, int]
) -> Pull:
    """Return the reversed pushes, by one step, of the box at `box` before the push."""
    height, width = shape
    row, column = box // width, box % width
    to_row, to_column = row + step[0], column + step[1]
    from_row, from_column = row - step[0], column - step[1]
    inside = (
        (to_row >= 0) & (to_row < height) & (to_column >= 0) & (to_column < width)
        & (from_row >= 0) & (from_row < height) & (from_column >= 0) & (from_column < width)
    )  # fmt: skip
    one = masks.dtype.type(1)
    at = one << box.astype(masks.dtype)
    to = one << np.where(inside, to_row * width + to_column, 0).astype(masks.dtype)
    player_before = one << np.where(inside, from_row * width + from_column, 0).astype(masks.dtype)
    possible = inside & ((masks & to) == 0) & ((masks & player_before) == 0)
    before = np.flatnonzero(possible)
    after = np.searchsorted(masks, masks[before] ^ at[before] ^ to[before])  # masks are sorted
    return Pull(before, after, at[before, None], player_before[before, None])


def start_states(
    boards: Boards,
    floor: NDArray[np.bool_],
    targets: NDArray[np.bool_],
    moves: tuple[int, int],
    draws: NDArray[np.uint64],
) -> Starts:
    """Return for each room a random state with a shortest solution of `moves` (least, most) moves.

    The length is sampled uniformly from the room's lengths, then a state of that length uniformly
    from those without a box on a target. `floor` and `targets` (B of them) are [R, h * w]; `draws`
    are random numbers [R, 2].
    """
    layers = distances(boards, floor, targets, moves[1])[moves[0] :]  # [D, M, R]
    overlap = (boards.masks[:, None] & _bits(targets, boards.masks.dtype)) != 0  # [M, R]
    layers[:, overlap] = 0  # no start has a box on a target
    has = layers.any(axis=1)  # [D, R]
    rows = np.flatnonzero(has.any(axis=0))
    nth = (draws[:, 0] % np.maximum(has.sum(axis=0), 1).astype(np.uint64)).astype(np.int64)
    length = np.argmax(np.cumsum(has, axis=0) > nth, axis=0)  # [R]
    chosen = np.ascontiguousarray(layers[length[rows], :, rows])  # [S, M]
    bits = np.unpackbits(chosen.view(np.uint8), axis=1, bitorder="little")  # [S, M * bits]
    count = np.cumsum(bits, axis=1, dtype=np.int32)  # its first value above n is state n
    nth = (draws[rows, 1] % count[:, -1].astype(np.uint64)).astype(np.int64)
    state = np.argmax(count > nth[:, None], axis=1)
    mask, player = np.divmod(state, 8 * boards.masks.dtype.itemsize)
    cells = floor.shape[1]
    boxes = np.zeros((len(rows), cells), np.bool_)
    np.put_along_axis(boxes, boards.cells[mask], True, axis=1)
    return Starts(rows, boxes, np.arange(cells) == player[:, None], length[rows] + moves[0])


def distances(
    boards: Boards, floor: NDArray[np.bool_], targets: NDArray[np.bool_], most: int
) -> NDArray[Any]:
    """Return the states at each distance: the player's cells as bits. Shape [most + 1, M, R]."""
    kind = boards.masks.dtype
    masks, rooms = boards.masks[:, None], np.arange(len(floor))
    free = _bits(floor, kind) & ~masks  # [M, R]
    layers = np.zeros((most + 1, len(boards.masks), len(floor)), kind)
    solved = np.searchsorted(boards.masks, _bits(targets, kind))
    layers[0, solved, rooms] = free[solved, rooms]
    unseen = free & ~layers[0]
    left, right = _edges(boards, kind)
    width, one = kind.type(boards.width), kind.type(1)
    for step in range(1, most + 1):
        last, new = layers[step - 1], layers[step]
        new |= (last << width) | (last >> width)
        new |= ((last & ~right) << one) | ((last & ~left) >> one)
        for pull in boards.pulls:
            reached = np.where(
                last[pull.after] & pull.player_after, pull.player_before, kind.type(0)
            )
            new[pull.before] |= reached
        new &= unseen
        unseen &= ~new
    return layers


def _bits(cells: NDArray[np.bool_], kind: np.dtype[Any]) -> NDArray[Any]:
    """Return each row of cells as one integer. Shape [R]."""
    weights = kind.type(1) << np.arange(cells.shape[1]).astype(kind)
    total: NDArray[Any] = np.bitwise_or.reduce(np.where(cells, weights, kind.type(0)), axis=1)
    return total


def _edges(boards: Boards, kind: np.dtype[Any]) -> tuple[Any, Any]:
    column = np.arange(boards.height * boards.width) % boards.width
    left = _bits((column == 0)[None], kind)[0]
    right = _bits((column == boards.width - 1)[None], kind)[0]
    return left, right
