"""MiniGrid 3.2.0's rules as functions of a state (`minigrid_env.py`, `babyai/core/verifier.py`)."""

from __future__ import annotations

from typing import Final, NamedTuple

ACTIONS: Final = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
"""In MiniGrid's order, so an index is its action."""
LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE = range(6)

STEPS: Final = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Right, down, left, up: columns and rows."""
CARRIED: Final = -1
GONE: Final = -2
"""Places of things that are not in the room: a toggled box is gone."""


class Scene(NamedTuple):
    """A level's first state, and its mission.

    Attributes:
        level: The level's name.
        rows: The walls, as `#`, row by row.
        start: Column, row and direction of the agent.
        things: Kind, color and cell of each key, ball and box.
        doors: Color and cell of each door; all are closed and none is locked.
        verb: `go to`, `pick up`, `put` or `open`.
        targets: The numbers of the things (doors, for `open`) that the mission means.
        beside: The numbers of the things next to which to put one of the targets.
        mission: The mission in words.
        steps: The steps after which MiniGrid ends the episode.
    """

    level: str
    rows: tuple[str, ...]
    start: tuple[int, int, int]
    things: tuple[tuple[str, str, int], ...]
    doors: tuple[tuple[str, int], ...]
    verb: str
    targets: tuple[int, ...]
    beside: tuple[int, ...]
    mission: str
    steps: int


class State(NamedTuple):
    """Where everything is.

    `facing` is a number of `STEPS`. `places` has the cell of each thing, or `CARRIED` or `GONE`.
    `opened` tells of each door whether it is open, `done` whether the mission is completed: 0 or 1.
    """

    column: int
    row: int
    facing: int
    places: tuple[int, ...]
    opened: tuple[int, ...]
    done: int = 0


def first(scene: Scene) -> State:
    """Return the state in which a scene begins."""
    cells = tuple(cell for _, _, cell in scene.things)
    return State(*scene.start, cells, (0,) * len(scene.doors))


def after(scene: Scene, state: State, action: int) -> State:
    """Return the state after an action; where it has no effect, an equal one."""
    column, row, facing, _, opened, _ = state
    front = in_front(scene, column, row, facing)
    if action in (LEFT, RIGHT):
        changed = state._replace(facing=(facing + (1 if action == RIGHT else -1)) % 4)
    elif action == FORWARD:
        door = door_at(scene, front)
        passable = is_free(scene, state, front) or (door >= 0 and opened[door])
        row, column = divmod(front, len(scene.rows[0])) if passable else (row, column)
        changed = state._replace(column=column, row=row)
    elif action == TOGGLE:
        changed = _toggled(scene, state, front)
    else:
        changed = state._replace(places=_handled(scene, state, front, action))
    return changed._replace(done=int(_completes(scene, state, changed, action)))


def _toggled(scene: Scene, state: State, front: int) -> State:
    door = door_at(scene, front)
    if door >= 0:
        return state._replace(opened=_moved(state.opened, door, 1 - state.opened[door]))
    thing = state.places.index(front) if front in state.places else -1
    if thing >= 0 and scene.things[thing][0] == "box":
        return state._replace(places=_moved(state.places, thing, GONE))
    return state


def _handled(scene: Scene, state: State, front: int, action: int) -> tuple[int, ...]:
    places = state.places
    if action == PICK_UP and CARRIED not in places and front in places:
        return _moved(places, places.index(front), CARRIED)
    if action == DROP and CARRIED in places and is_free(scene, state, front):
        return _moved(places, places.index(CARRIED), front)
    return places


def _completes(scene: Scene, before: State, now: State, action: int) -> bool:
    front = in_front(scene, now.column, now.row, now.facing)
    if scene.verb == "go to":
        # the verifier looks where the things were: it follows them only when one is dropped
        return front in [before.places[n] for n in scene.targets]
    if scene.verb == "pick up":
        return before.places != now.places and any(now.places[n] == CARRIED for n in scene.targets)
    if scene.verb == "open":
        door = door_at(scene, front)
        return action == TOGGLE and door in scene.targets and bool(now.opened[door])
    dropped = [n for n in scene.targets if before.places[n] == CARRIED and now.places[n] >= 0]
    beside = [now.places[n] for n in scene.beside]
    return any(is_beside(scene, now.places[n], cell) for n in dropped for cell in beside)


def in_front(scene: Scene, column: int, row: int, facing: int) -> int:
    """Return the cell that the agent faces."""
    right, down = STEPS[facing]
    return (row + down) * len(scene.rows[0]) + column + right


def is_wall(scene: Scene, cell: int) -> bool:
    """Return whether a cell is a wall."""
    row, column = divmod(cell, len(scene.rows[0]))
    return scene.rows[row][column] == "#"


def door_at(scene: Scene, cell: int) -> int:
    """Return the number of the door in a cell, -1 if there is none."""
    return next((n for n, (_, place) in enumerate(scene.doors) if place == cell), -1)


def closed(scene: Scene, opened: tuple[int, ...]) -> set[int]:
    """Return the cells of the doors that are closed."""
    doors = zip(scene.doors, opened, strict=True)
    return {cell for (_, cell), is_open in doors if not is_open}


def is_free(scene: Scene, state: State, cell: int) -> bool:
    """Return whether a cell is empty: no wall, no door and no thing."""
    return not (is_wall(scene, cell) or cell in state.places or door_at(scene, cell) >= 0)


def is_beside(scene: Scene, one: int, other: int) -> bool:
    """Return whether two cells share a side."""
    width = len(scene.rows[0])
    if min(one, other) < 0:
        return False
    rows, columns = abs(one // width - other // width), abs(one % width - other % width)
    return rows + columns == 1


def _moved(values: tuple[int, ...], number: int, value: int) -> tuple[int, ...]:
    return (*values[:number], value, *values[number + 1 :])
