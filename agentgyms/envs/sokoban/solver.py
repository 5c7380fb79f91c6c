"""The exact solver, by a cached table of all states for small rooms, else by search on demand."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from agentgyms.envs.sokoban.engine import WORDS, Room, State, cells_of

DEAD: Final = -1
"""Distance of a state from which the room cannot be solved."""

UNKNOWN: Final = -2
"""Distance of a state in a large room whose search was aborted."""

_TABLE_STATES: Final = 60_000
_CACHED_TABLES: Final = 512
_CACHED_SEARCHES: Final = 4096
_MAX_MASKS: Final = 60_000
"""A search is aborted after this many box positions: about two seconds."""

Layer = dict[int, int]
"""States at one distance: for each mask of boxes the mask of the player's cells."""


def has_table(room: Room) -> bool:
    """Return whether the room is small enough for a table of all states."""
    cells = room.floor.bit_count()
    return cells * math.comb(cells, room.num_boxes) <= _TABLE_STATES


def distance(state: State) -> int:
    """Return the number of moves of a shortest solution, 0 if solved; `DEAD` or `UNKNOWN`."""
    room = state.room
    if has_table(room):
        row = _table(room).get(state.boxes)
        return DEAD if row is None else row[state.player]
    plan = _search(room, state.boxes, state.player)
    return plan if isinstance(plan, int) else len(plan)


def best_action(state: State) -> str:
    """Return the first action of a shortest solution; "" if none is known or needed."""
    room = state.room
    if not has_table(room):
        plan = _search(room, state.boxes, state.player)
        return "" if isinstance(plan, int) or not plan else plan[0]
    left = distance(state)
    for number, word in enumerate(WORDS, 1) if left > 0 else ():
        after = State(room, state.boxes, state.player)
        after.step(number)
        if distance(after) == left - 1:
            return word
    return ""


@lru_cache(maxsize=_CACHED_TABLES)
def _table(room: Room) -> dict[int, array[int]]:
    """Return the distances of all solvable states, by boxes and player."""
    size, deltas, floor = (room.height + 1) * (room.width + 1), room.deltas[1:5], room.floor
    unknown = array("h", [DEAD]) * size
    rows = {room.targets: unknown[:]}
    frontier = [(room.targets, cell) for cell in cells_of(floor & ~room.targets)]
    for _, cell in frontier:
        rows[room.targets][cell] = 0
    moves = 0
    while frontier:
        moves += 1
        reached = []
        for boxes, player in frontier:
            free = floor & ~boxes
            for delta in deltas:
                came_from = player - delta
                if not free >> came_from & 1:
                    continue
                before = [boxes]
                if boxes >> (player + delta) & 1:
                    before.append(boxes ^ 1 << player + delta ^ 1 << player)
                for mask in before:
                    row = rows.get(mask)
                    if row is None:
                        row = rows[mask] = unknown[:]
                    if row[came_from] == DEAD:
                        row[came_from] = moves
                        reached.append((mask, came_from))
        frontier = reached
    return rows


@lru_cache(maxsize=_CACHED_SEARCHES)
def _search(room: Room, boxes: int, player: int) -> tuple[str, ...] | int:
    """Return a shortest solution as actions by breadth-first search, else `DEAD` or `UNKNOWN`."""
    if boxes == room.targets:
        return ()
    live = _live_cells(room)
    if boxes & ~live:
        return DEAD
    seen: Layer = {boxes: 1 << player}
    layers: list[Layer] = [dict(seen)]
    while layers[-1]:
        layer: Layer = {}
        for mask, players in layers[-1].items():
            for after, cells in _moves(room, live, mask, players):
                fresh = cells & ~seen.get(after, 0)
                if fresh:
                    seen[after] = seen.get(after, 0) | fresh
                    layer[after] = layer.get(after, 0) | fresh
        if room.targets in layer:
            return _extract_solution(room, layers, layer[room.targets])
        layers.append(layer)
        if len(seen) > _MAX_MASKS:
            return UNKNOWN
    return DEAD


def _moves(room: Room, live: int, boxes: int, players: int) -> Iterator[tuple[int, int]]:
    """Yield (boxes, player's cells) after one move from any of the player's cells."""
    free = room.floor & ~boxes
    walked = 0
    for delta in room.deltas[1:5]:
        walked |= _shift(players, delta)
        pushing = players & _shift(boxes, -delta) & _shift(free & live, -2 * delta)
        for player in cells_of(pushing):
            box = player + delta
            yield boxes ^ 1 << box ^ 1 << box + delta, 1 << box
    yield boxes, walked & free


def _shift(mask: int, by: int) -> int:
    return mask << by if by >= 0 else mask >> -by


@lru_cache(maxsize=_CACHED_TABLES)
def _live_cells(room: Room) -> int:
    """Return the live cells: those from which a single box can be pushed to a target."""
    live = frontier = room.targets
    while frontier:
        pulled = 0
        for delta in room.deltas[1:5]:  # the player pulls the box away from the target
            floor = _shift(room.floor, -delta) & room.floor
            pulled |= _shift(frontier, delta) & floor
        frontier = pulled & ~live
        live |= frontier
    return live


def _extract_solution(room: Room, layers: list[Layer], solved: int) -> tuple[str, ...]:
    """Return the actions from the first layer to a solved state after the last one."""
    boxes, player = room.targets, next(cells_of(solved))
    words = []
    for layer in reversed(layers):
        word, boxes, player = _predecessor(room, layer, boxes, player)
        words.append(word)
    return tuple(reversed(words))


def _predecessor(room: Room, layer: Layer, boxes: int, player: int) -> tuple[str, int, int]:
    for word, delta in zip(WORDS, room.deltas[1:5], strict=True):
        before = player - delta
        if layer.get(boxes, 0) >> before & 1:
            return word, boxes, before
        pushed = player + delta
        if boxes >> pushed & 1:
            earlier = boxes ^ 1 << pushed ^ 1 << player
            if layer.get(earlier, 0) >> before & 1:
                return word, earlier, before
    raise AssertionError("every state of a layer was reached from the one before it")
