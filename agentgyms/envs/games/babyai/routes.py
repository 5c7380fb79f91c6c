"""The fewest actions that complete a mission while things that it does not name stay in place.

A thing that is carried but not wanted is put down first. Closed doors on the way are opened.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from agentgyms.envs.games.babyai.world import (
    ACTIONS,
    CARRIED,
    DROP,
    FORWARD,
    GONE,
    LEFT,
    PICK_UP,
    RIGHT,
    STEPS,
    TOGGLE,
    Scene,
    State,
    closed,
    door_at,
    in_front,
)

Pose = tuple[int, int, int]
"""Column, row and direction."""

_Faced = tuple[Pose, int]

FAR: Final = 10**6
"""The actions that are left where nothing completes the mission."""


def left(scene: Scene, state: State) -> int:
    """Return the actions that are left, 0 at the end, `FAR` if the mission is out of reach."""
    if state.done:
        return 0
    costs = _costs(scene, state.places, state.opened)
    # beside its target an agent must take one action more, which need not move it
    return max(1, costs.get(_pose(state), FAR))


def best(scene: Scene, state: State) -> str:
    """Return the next action, "" at the end and where the mission is out of reach."""
    if state.done or left(scene, state) >= FAR:
        return ""
    costs, pose = _costs(scene, state.places, state.opened), _pose(state)
    ends = {end: (cost, action) for end, cost, action in _ends(scene, state.places, state.opened)}
    if pose in ends and ends[pose][0] == costs[pose]:
        return ACTIONS[ends[pose][1]]
    for action, there, cost in _moves(scene, state, pose):
        if costs.get(there, FAR) + cost == costs[pose]:
            return ACTIONS[TOGGLE if cost > 1 else action]
    raise AssertionError(f"no action leads on from {pose}")


def _pose(state: State) -> Pose:
    return state.column, state.row, state.facing


def about(scene: Scene, state: State) -> int:
    """Return the actions that are left as `left` does, but with one for what is put down first.

    That may be one or more too few; it needs one search instead of one for each free cell.
    """
    unwanted = _unwanted(scene, state.places)
    if state.done or unwanted < 0:
        return left(scene, state)
    return 1 + left(scene, state._replace(places=_with(state.places, unwanted, GONE)))


def _unwanted(scene: Scene, places: tuple[int, ...]) -> int:
    """Return the number of the carried thing that is in the way, -1 if there is none."""
    if scene.verb not in ("pick up", "put") or CARRIED not in places:
        return -1
    number = places.index(CARRIED)
    return -1 if scene.verb == "put" and number in scene.targets else number


@lru_cache(maxsize=1 << 13)
def _costs(scene: Scene, places: tuple[int, ...], opened: tuple[int, ...]) -> dict[Pose, int]:
    """Return the actions that are left from each pose, with the things in these places."""
    floor, shut = _floor(scene) - set(places), closed(scene, opened)
    width = len(scene.rows[0])
    found: dict[Pose, int] = {}
    waiting = [(cost, pose) for pose, cost, _ in _ends(scene, places, opened)]
    heapq.heapify(waiting)
    while waiting:
        cost, pose = heapq.heappop(waiting)
        if pose in found:
            continue
        found[pose] = cost
        column, row, facing = pose
        right, down = STEPS[facing]
        entered = 2 if row * width + column in shut else 1
        before = [(cost + 1, (column, row, (facing + turn) % 4)) for turn in (1, -1)]
        if (row - down) * width + column - right in floor:
            before.append((cost + entered, (column - right, row - down, facing)))
        for one in before:
            if one[1] not in found:
                heapq.heappush(waiting, one)
    return found


@lru_cache(maxsize=4096)
def _floor(scene: Scene) -> frozenset[int]:
    cells = "".join(scene.rows)
    return frozenset(number for number, cell in enumerate(cells) if cell != "#")


def _moves(scene: Scene, state: State, pose: Pose) -> Iterator[tuple[int, Pose, int]]:
    """Yield action, next pose and number of actions; a closed door is opened and entered."""
    column, row, facing = pose
    yield LEFT, (column, row, (facing - 1) % 4), 1
    yield RIGHT, (column, row, (facing + 1) % 4), 1
    front = in_front(scene, column, row, facing)
    if front in _floor(scene) and front not in state.places:
        there = divmod(front, len(scene.rows[0]))[::-1]
        yield FORWARD, (*there, facing), 2 if front in closed(scene, state.opened) else 1


def _facing(scene: Scene, places: tuple[int, ...], cells: Iterable[int]) -> Iterator[_Faced]:
    width = len(scene.rows[0])
    floor = _floor(scene) - set(places)
    for cell in cells:
        row, column = divmod(cell, width)
        for facing, (right, down) in enumerate(STEPS):
            if (row - down) * width + column - right in floor:
                yield (column - right, row - down, facing), cell


def _ends(
    scene: Scene, places: tuple[int, ...], opened: tuple[int, ...]
) -> Iterator[tuple[Pose, int, int]]:
    """Yield the poses from which a walk ends: the actions left there, and the first of them."""
    carried = places.index(CARRIED) if CARRIED in places else -1
    free = _floor(scene) - {*places, *(cell for _, cell in scene.doors)}
    if scene.verb == "open":
        for pose, cell in _facing(scene, places, [scene.doors[n][1] for n in scene.targets]):
            yield pose, 1 + opened[door_at(scene, cell)], TOGGLE
    elif scene.verb == "go to":
        for pose, _ in _facing(scene, places, _cells(places, scene.targets)):
            yield pose, 0, DROP if carried < 0 else PICK_UP
    elif _unwanted(scene, places) >= 0:
        for pose, cell in _facing(scene, places, free):
            after = _costs(scene, _with(places, carried, cell), opened)
            yield pose, 1 + after.get(pose, FAR), DROP
    elif carried >= 0:
        width, near = len(scene.rows[0]), _cells(places, scene.beside)
        around = {cell + step for cell in near for step in (1, -1, width, -width)}
        for pose, _ in _facing(scene, places, around & free):
            yield pose, 1, DROP
    else:
        for pose, cell in _facing(scene, places, _cells(places, scene.targets)):
            taken = _with(places, places.index(cell), CARRIED)
            more = 0 if scene.verb == "pick up" else _costs(scene, taken, opened).get(pose, FAR)
            yield pose, 1 + more, PICK_UP


def _cells(places: tuple[int, ...], numbers: Sequence[int]) -> list[int]:
    return [places[n] for n in numbers if places[n] >= 0]


def _with(places: tuple[int, ...], number: int, place: int) -> tuple[int, ...]:
    return (*places[:number], place, *places[number + 1 :])
