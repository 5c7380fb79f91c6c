"""The fewest actions that complete a mission while things that it does not name stay in place.

What is carried at the moment and not wanted is put down first. Closed doors on the way are opened.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from agentgyms.envs.games.babyai.world import (
    ACTIONS,
    CARRIED,
    DROP,
    FORWARD,
    LEFT,
    PICK_UP,
    RIGHT,
    TOGGLE,
    Scene,
    State,
    door_at,
    in_front,
    is_beside,
    is_free,
    is_wall,
)

Pose = tuple[int, int, int]
"""Column, row and direction."""

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


@lru_cache(maxsize=1 << 13)
def _costs(scene: Scene, places: tuple[int, ...], opened: tuple[int, ...]) -> dict[Pose, int]:
    """Return the actions that are left from each pose, with the things in these places."""
    state = State(0, 0, 0, places, opened)
    before: dict[Pose, list[tuple[Pose, int]]] = {}
    for pose in _poses(scene, state):
        for _, there, cost in _moves(scene, state, pose):
            before.setdefault(there, []).append((pose, cost))
    found: dict[Pose, int] = {}
    waiting = [(cost, pose) for pose, cost, _ in _ends(scene, places, opened)]
    heapq.heapify(waiting)
    while waiting:
        cost, pose = heapq.heappop(waiting)
        if pose in found:
            continue
        found[pose] = cost
        for earlier, step in before.get(pose, ()):
            if earlier not in found:
                heapq.heappush(waiting, (cost + step, earlier))
    return found


def _poses(scene: Scene, state: State) -> Iterator[Pose]:
    """Yield all poses in cells that the agent can stand in, now or behind a door."""
    width = len(scene.rows[0])
    for cell in range(width * len(scene.rows)):
        if is_free(scene, state, cell) or door_at(scene, cell) >= 0:
            row, column = divmod(cell, width)
            yield from ((column, row, facing) for facing in range(4))


def _moves(scene: Scene, state: State, pose: Pose) -> Iterator[tuple[int, Pose, int]]:
    """Yield action, next pose and number of actions; a closed door is opened and entered."""
    column, row, facing = pose
    yield LEFT, (column, row, (facing - 1) % 4), 1
    yield RIGHT, (column, row, (facing + 1) % 4), 1
    front = in_front(scene, column, row, facing)
    if is_wall(scene, front):
        return
    door = door_at(scene, front)
    if door >= 0 or is_free(scene, state, front):
        there = divmod(front, len(scene.rows[0]))[::-1]
        yield FORWARD, (*there, facing), 2 if door >= 0 and not state.opened[door] else 1


def _ends(
    scene: Scene, places: tuple[int, ...], opened: tuple[int, ...]
) -> Iterator[tuple[Pose, int, int]]:
    """Yield the poses from which a walk ends: the actions left there, and the first of them."""
    state = State(0, 0, 0, places, opened)
    carried = places.index(CARRIED) if CARRIED in places else -1
    for pose in _poses(scene, state):
        front = in_front(scene, *pose)
        if scene.verb == "go to":
            if front in [places[n] for n in scene.targets]:
                yield pose, 0, DROP if carried < 0 else PICK_UP
        elif scene.verb == "open":
            door = door_at(scene, front)
            if door in scene.targets:
                yield pose, 1 + opened[door], TOGGLE
        elif carried >= 0 and (scene.verb == "pick up" or carried not in scene.targets):
            if is_free(scene, state, front):
                dropped = tuple(front if n == carried else p for n, p in enumerate(places))
                cost = _costs(scene, dropped, opened).get(pose, FAR)
                yield pose, 1 + cost, DROP
        elif carried >= 0:
            others = [places[n] for n in scene.beside]
            if is_free(scene, state, front) and any(is_beside(scene, front, p) for p in others):
                yield pose, 1, DROP
        else:
            yield from _pick_ups(scene, state, pose, front)


def _pick_ups(
    scene: Scene, state: State, pose: Pose, front: int
) -> Iterator[tuple[Pose, int, int]]:
    for number in scene.targets:
        if state.places[number] == front:
            if scene.verb == "pick up":
                yield pose, 1, PICK_UP
            else:
                taken = tuple(CARRIED if n == number else p for n, p in enumerate(state.places))
                yield pose, 1 + _costs(scene, taken, state.opened).get(pose, FAR), PICK_UP
