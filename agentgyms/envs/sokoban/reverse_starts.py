"""Initial states of large rooms, by random reverse play and the solver."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.deadlines import check_time
from agentgyms.core.randomness import Chance
from agentgyms.envs.sokoban import solver
from agentgyms.envs.sokoban.engine import Room, State, cells_of
from agentgyms.envs.sokoban.retrograde import Starts

_PULL_PROBABILITY: Final = 0.8
"""Probability of pulling a box if possible."""


def start_states(
    shape: tuple[int, int],
    floor: NDArray[np.bool_],
    targets: NDArray[np.bool_],
    moves: tuple[int, int],
    names: list[str],
) -> Starts:
    """Return a state with a shortest solution of `moves` moves for each room where one was found.

    `floor` and `targets` are [R, h * w]; `names` are those of the rooms' random sources.
    """
    rows, boxes, players, lengths = [], [], [], []
    for row, name in enumerate(names):
        check_time("searching rooms")
        # The solved room, with the player on its first free cell.
        empty = Room(*shape, 0, 0, 0, 0)
        masks = [
            sum(1 << empty.cell(*divmod(cell, shape[1])) for cell in np.flatnonzero(cells).tolist())
            for cells in (floor[row], targets[row])
        ]
        player = next(cells_of(masks[0] & ~masks[1]))
        room = Room(*shape, masks[0], masks[1], masks[1], player)
        played = _random_reverse_play(room, Chance(name), 8 * moves[1])
        if played is None:
            continue
        length = solver.distance(played)
        if moves[0] <= length <= moves[1]:
            rows.append(row)
            boxes.append(_cells(played.boxes, room))
            players.append(_cells(1 << played.player, room))
            lengths.append(length)
    size = (len(rows), floor.shape[1])
    return Starts(
        np.array(rows, np.int64),
        np.array(boxes, np.bool_).reshape(size),
        np.array(players, np.bool_).reshape(size),
        np.array(lengths, np.int64),
    )


def _random_reverse_play(room: Room, chance: Chance, least: int) -> State | None:
    """Return a state after at least `least` reversed moves, with no box on a target, or None."""
    boxes, free_cells = room.boxes, list(cells_of(room.floor & ~room.boxes))
    player = chance.pick(free_cells)
    for moved in range(3 * least):
        if moved >= least and not boxes & room.targets:
            return State(room, boxes, player)
        delta = room.deltas[1 + chance.below(4)]
        to, behind = player + delta, player - delta
        if not (room.floor & ~boxes) >> to & 1:
            continue
        if boxes >> behind & 1 and chance.below(100) < int(100 * _PULL_PROBABILITY):
            boxes ^= 1 << behind ^ 1 << player
        player = to
    return None


def _cells(mask: int, room: Room) -> NDArray[np.bool_]:
    cells = np.zeros(room.height * room.width, np.bool_)
    for cell in cells_of(mask):
        row, column = room.position(cell)
        cells[row * room.width + column] = True
    return cells
