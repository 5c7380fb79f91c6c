"""Reproduces the rooms that gym-sokoban, RAGEN and verl-agent generate from a seed, bit for bit.

Their generator (Racanière et al. 2017, arXiv:1707.06203, appendix) carves a floor by a random walk,
places player and targets, and searches in reverse, depth first, from the solved room for the state
with the highest score. This module draws the same random numbers from the same two generators
(Python's and numpy's) and visits states in the same order, but on bit masks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from agentgyms.core.deadlines import check_time
from agentgyms.envs.sokoban.engine import Room

_TRIES: Final = 4
_TURN_PROBABILITY: Final = 0.35
_MAX_STATES: Final = 300_000
_STATES_BETWEEN_CHECKS: Final = 1024
_STAMPS: Final = (
    ((1, 0), (1, 1), (1, 2)),
    ((0, 1), (1, 1), (2, 1)),
    ((1, 0), (1, 1), (2, 1)),
    ((1, 0), (1, 1), (2, 0), (2, 1)),
    ((1, 1), (1, 2), (2, 1)),
)
"""Cells of a 3 x 3 square that are carved at each step of the walk."""
_HEADINGS: Final = ((1, 0), (0, 1), (-1, 0), (0, -1))


@dataclass(frozen=True, slots=True)
class Peer:
    """A generator and its settings."""

    depth: int  # depth of the reverse search (`search_depth`; gym-sokoban's `ttl`)
    # True for the generator of RAGEN and verl-agent: four actions, correct count of box swaps, and
    # a few random steps of the player at the end. False for gym-sokoban's.
    walks: bool


PEERS: Final = {
    "gym_sokoban": Peer(depth=300, walks=False),
    "ragen": Peer(depth=300, walks=True),
    "verl_agent": Peer(depth=30, walks=True),
}


class NoRoom(RuntimeError):
    """The peer's generator fails on this seed, after so many states: it raises or warns."""

    def __init__(self, message: str, states: int) -> None:
        super().__init__(message)
        self.states = states


def generate(shape: tuple[int, int], boxes: int, seed: int, peer: Peer) -> Room:
    """Return the peer's room after `random.seed(seed); np.random.seed(seed)`, else raise `NoRoom`.

    `shape` are rows and columns; the seed is in [0, 2**32).
    """
    # The peers walk with Python's global generator and place with numpy's.
    walk, places = random.Random(seed), np.random.RandomState(seed)
    states = 0
    for _ in range(_TRIES):
        cells = _carve(shape, walk)
        if len(cells) <= boxes + 1:
            message = f"Not enough free spots (#{len(cells)}) to place 1 player and {boxes} boxes."
            raise NoRoom(message, states)
        blank = Room(*shape, 0, 0, 0, 0)
        bits = [blank.cell(row, column) for row, column in cells]
        floor = sum(1 << bit for bit in bits)
        player = bits.pop(places.randint(len(bits)))
        targets = sorted(bits.pop(places.randint(len(bits))) for _ in range(boxes))
        room = Room(*shape, floor, sum(1 << bit for bit in targets), 0, player)
        best, searched = _reverse_search(room, targets, peer)
        states += searched
        if best.score > 0:
            return (
                _walk(room, best, walk)
                if peer.walks
                else _with_start(room, best.boxes, best.player)
            )
    raise NoRoom(f"no state with a score above 0 in {_TRIES} tries", states)


def _with_start(room: Room, boxes: int, player: int) -> Room:
    return Room(room.height, room.width, room.floor, room.targets, boxes, player)


def _carve(shape: tuple[int, int], walk: random.Random) -> list[tuple[int, int]]:
    """Return the floor cells, row by row."""
    height, width = shape
    heading = _HEADINGS[walk.randrange(4)]
    row, column = 1 + walk.randrange(height - 1), 1 + walk.randrange(width - 1)
    carved = set()
    for _ in range(int(1.7 * (height + width))):
        if walk.random() < _TURN_PROBABILITY:
            heading = _HEADINGS[walk.randrange(4)]
        row = max(min(row + heading[0], height - 2), 1)
        column = max(min(column + heading[1], width - 2), 1)
        carved.add((row - 1, column - 1, walk.randrange(5)))  # the last draw is the stamp
    cells = {(r + down, c + right) for r, c, stamp in carved for down, right in _STAMPS[stamp]}
    return sorted((r, c) for r, c in cells if 0 < r < height - 1 and 0 < c < width - 1)


class _Best(NamedTuple):
    """The first state with the highest score so far."""

    score: int
    boxes: int
    player: int
    displacement: int


def _reverse_search(  # noqa: C901
    room: Room, homes: list[int], peer: Peer
) -> tuple[_Best, int]:
    """Return the best state of a reverse search, depth first, and the number of states.

    A state is the player, the boxes in the order of their targets, and the set of moved ones: for
    the peers an unmoved box is still a target. A closure is faster.
    """
    targets, walls, swaps_tracked = room.targets, ~room.floor, peer.walks
    deltas = tuple(enumerate(room.deltas[1 : 5 if swaps_tracked else 9]))
    positions = [room.position(cell) for cell in range((room.height + 1) * (room.width + 1))]
    seen: set[tuple[int, int, int]] = set()
    best = _Best(-1, targets, room.player, 0)

    def visit(
        player: int,
        boxes: tuple[int, ...],
        moved: int,  # which boxes were ever moved, as a mask over their numbers
        moved_cells: int,  # mask of the cells of those
        occupied: int,  # mask of the cells of all boxes
        swaps: int,  # how often another box than `last` was pulled, as the peer counts
        last: int,
        depth: int,
    ) -> None:
        key = (player, moved_cells, moved)
        if key in seen or len(seen) >= _MAX_STATES:
            return
        seen.add(key)
        if not len(seen) % _STATES_BETWEEN_CHECKS:
            check_time("searching a peer's room")
        nonlocal best
        displaced = 0
        if not (occupied | 1 << player) & targets:
            displaced = _displacement(boxes, homes, positions)
        if swaps * displaced > best.score:
            best = _Best(swaps * displaced, occupied, player, displaced)
        if depth <= 2:
            return
        blocked = occupied | walls
        for number, delta in deltas:
            to = player + delta
            if blocked >> to & 1:
                continue
            behind = 1 << player - delta
            if number < 4 and occupied & behind:  # the first four directions pull a box
                box, here = boxes.index(player - delta), 1 << player
                visit(
                    to,
                    (*boxes[:box], player, *boxes[box + 1 :]),
                    moved | 1 << box,
                    moved_cells & ~(behind if moved >> box & 1 else 0) | here,
                    occupied ^ behind ^ here,
                    swaps + (box != last),
                    box if swaps_tracked else last,  # gym-sokoban does not update it
                    depth - 1,
                )
            elif (to, moved_cells, moved) not in seen:
                visit(to, boxes, moved, moved_cells, occupied, swaps, last, depth - 1)

    if peer.depth > 1:
        visit(room.player, tuple(homes), 0, 0, targets, 0, -1, peer.depth)
    return best, len(seen)


def _displacement(
    boxes: tuple[int, ...], homes: list[int], positions: list[tuple[int, int]]
) -> int:
    """Return the sum of Manhattan distances between boxes and their targets."""
    total = 0
    for cell, home in zip(boxes, homes, strict=True):
        (row, column), (home_row, home_column) = positions[cell], positions[home]
        total += abs(row - home_row) + abs(column - home_column)
    return total


def _walk(room: Room, best: _Best, walk: random.Random) -> Room:
    """Return the room after RAGEN's random steps of the player over free cells."""
    player = best.player
    if walk.random() <= (0.8 if best.displacement == 1 else 0.5):
        free = room.floor & ~best.boxes
        visited = 1 << player
        for step in range(3):
            ways = [player + delta for delta in room.deltas[1:5]]
            ways = [cell for cell in ways if (free & ~visited) >> cell & 1]
            if not ways:
                break
            player = ways[walk.randrange(len(ways))]
            visited |= 1 << player
            if step == 2 or walk.random() > 0.5:
                break
    return _with_start(room, best.boxes, player)
