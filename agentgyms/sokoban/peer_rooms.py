"""The rooms that other packages make from a seed, bit for bit: gym-sokoban, RAGEN, verl-agent.

Their generator (Racanière et al. 2017, arXiv:1707.06203, appendix) carves a floor by a random walk,
places player and targets, and plays backwards depth first from the solved room for the state that
scores best. Random numbers are drawn here in their order from the same two generators, Python's and
numpy's, and states are visited in their order; everything else is on bit masks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from agentgyms.sokoban.engine import Room

_TRIES: Final = 4
_TURN: Final = 0.35
_MOST_STATES: Final = 300_000
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
    """A generator and its settings.

    Attributes:
        depth: How deep the play backwards goes (`search_depth`; gym-sokoban's `ttl`).
        walks: RAGEN's generator and verl-agent's: four actions, box swaps counted as such, and a
            few random steps of the player in the end. Without, gym-sokoban's.
    """

    depth: int
    walks: bool


PEERS: Final = {
    "gym_sokoban": Peer(depth=300, walks=False),
    "ragen": Peer(depth=300, walks=True),
    "verl_agent": Peer(depth=30, walks=True),
}


class NoRoom(RuntimeError):
    """The peer's generator gives up on this seed: it raises or warns."""


def generate(shape: tuple[int, int], boxes: int, seed: int, peer: Peer) -> Room:
    """Return the room that the peer makes after `random.seed(seed); np.random.seed(seed)`.

    Args:
        shape: Rows and columns.
        boxes: Number of boxes.
        seed: In [0, 2**32).
        peer: Whose generator.

    Raises:
        NoRoom: It makes none from this seed.
    """
    walk, places = random.Random(seed), np.random.RandomState(seed)
    for _ in range(_TRIES):
        cells = _carve(shape, walk)
        if len(cells) <= boxes + 1:
            raise NoRoom(
                f"Not enough free spots (#{len(cells)}) to place 1 player and {boxes} boxes."
            )
        blank = Room(*shape, 0, 0, 0, 0)
        bits = [blank.cell(row, column) for row, column in cells]
        floor = sum(1 << bit for bit in bits)
        player = bits.pop(places.randint(len(bits)))
        targets = sorted(bits.pop(places.randint(len(bits))) for _ in range(boxes))
        room = Room(*shape, floor, sum(1 << bit for bit in targets), 0, player)
        best = _play_backwards(room, targets, peer)
        if best.score > 0:
            return _walk(room, best, walk) if peer.walks else _begun(room, best.boxes, best.player)
    raise NoRoom(f"no state with a score above 0 in {_TRIES} tries")


def _begun(room: Room, boxes: int, player: int) -> Room:
    return Room(room.height, room.width, room.floor, room.targets, boxes, player)


def _carve(shape: tuple[int, int], walk: random.Random) -> list[tuple[int, int]]:
    """Return the floor, row by row."""
    height, width = shape
    heading = _HEADINGS[walk.randrange(4)]
    row, column = 1 + walk.randrange(height - 1), 1 + walk.randrange(width - 1)
    carved = set()
    for _ in range(int(1.7 * (height + width))):
        if walk.random() < _TURN:
            heading = _HEADINGS[walk.randrange(4)]
        row = max(min(row + heading[0], height - 2), 1)
        column = max(min(column + heading[1], width - 2), 1)
        carved.add((row - 1, column - 1, walk.randrange(5)))
    cells = {(r + down, c + right) for r, c, stamp in carved for down, right in _STAMPS[stamp]}
    return sorted((r, c) for r, c in cells if 0 < r < height - 1 and 0 < c < width - 1)


class _Best(NamedTuple):
    """The state with the highest score so far, of those the first."""

    score: int
    boxes: int
    player: int
    displacement: int


def _play_backwards(room: Room, homes: list[int], peer: Peer) -> _Best:  # noqa: C901
    """Return the best state of a depth-first play backwards from the solved room.

    A state is the player, the boxes in the order of the targets they began on, and which of them
    were ever moved: for the peers a box that was not moved is still a target. The order of visits
    is theirs. A closure, because this is where the time goes.
    """
    targets, walls, faithful = room.targets, ~room.floor, peer.walks
    deltas = tuple(enumerate(room.deltas[1 : 5 if faithful else 9]))
    positions = [room.position(cell) for cell in range((room.height + 1) * (room.width + 1))]
    seen: set[tuple[int, int, int]] = set()
    best = _Best(-1, targets, room.player, 0)

    def visit(
        player: int,
        boxes: tuple[int, ...],
        moved: int,  # which boxes were ever moved, as a mask over their numbers
        astray: int,  # mask of the cells of those
        occupied: int,  # mask of the cells of all boxes
        swaps: int,  # how often another box than `last` was pulled, as the peer counts
        last: int,
        depth: int,
    ) -> None:
        key = (player, astray, moved)
        if key in seen or len(seen) >= _MOST_STATES:
            return
        seen.add(key)
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
            if number < 4 and occupied & behind:
                box, here = boxes.index(player - delta), 1 << player
                visit(
                    to,
                    (*boxes[:box], player, *boxes[box + 1 :]),
                    moved | 1 << box,
                    astray & ~(behind if moved >> box & 1 else 0) | here,
                    occupied ^ behind ^ here,
                    swaps + (box != last),
                    box if faithful else last,  # gym-sokoban forgets which box it was
                    depth - 1,
                )
            elif (to, astray, moved) not in seen:
                visit(to, boxes, moved, astray, occupied, swaps, last, depth - 1)

    if peer.depth > 1:
        visit(room.player, tuple(homes), 0, 0, targets, 0, -1, peer.depth)
    return best


def _displacement(
    boxes: tuple[int, ...], homes: list[int], positions: list[tuple[int, int]]
) -> int:
    """Return by how many cells the boxes are away from their targets, in all."""
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
    return _begun(room, best.boxes, player)
