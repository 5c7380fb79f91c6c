"""BabyAI's levels by their seeds: rooms and missions, drawn as the package `minigrid` 3.2.0 does.

Source: `minigrid/envs/babyai` and `minigrid/core/roomgrid.py`. The numbers come from one generator,
so the order of the draws is part of a level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from gymnasium.utils import seeding

from agentgyms.envs.games.babyai.world import STEPS, Scene, is_beside

T = TypeVar("T")

_COLORS: Final = ("blue", "green", "grey", "purple", "red", "yellow")
_KINDS: Final = ("key", "ball", "box")
_SIDES: Final = ("left", "right", "front", "behind")
_WHERE: Final = {"front": "in front of you", "behind": "behind you"}
_TRIES: Final = 1000
_DESCRIPTIONS: Final = 100


class _Rejected(Exception):
    """A draw that the level refuses: it is drawn anew, with the numbers that come next."""


class Level(NamedTuple):
    """A level of BabyAI.

    `draw` draws a room and its mission. `size` is the number of cells along a room's side, walls
    included. `walks` are the walks that the mission takes; they decide the limit of steps. `others`
    is the number of further things.
    """

    draw: Callable[[_Room], Scene]
    size: int = 8
    rows: int = 1
    columns: int = 1
    walks: int = 1
    others: int = 0


def scene(name: str, seed: int, bigger: int = 0) -> Scene:
    """Return the room and mission of a level and a seed; `bigger` adds to the rooms' side."""
    level = LEVELS[name]._replace(size=LEVELS[name].size + bigger)
    rng, _ = seeding.np_random(seed)
    while True:
        try:
            return level.draw(_Room(name, level, rng))
        except _Rejected:
            continue


class _Room:
    """Rooms that are being drawn."""

    def __init__(self, name: str, level: Level, rng: Any) -> None:
        self.name, self.level, self.rng = name, level, rng
        self.span = level.size - 1
        self.width, self.height = self.span * level.columns + 1, self.span * level.rows + 1
        self.things: list[tuple[str, str, int]] = []
        self.doors: list[tuple[str, int]] = []
        self.walls = {
            row * self.width + column
            for row in range(self.height)
            for column in range(self.width)
            if row % self.span == 0 or column % self.span == 0
        }
        self.door_cells = self._door_cells()
        # until it is placed the agent is in the middle
        self.column = (level.columns // 2) * self.span + level.size // 2
        self.row = (level.rows // 2) * self.span + level.size // 2
        self.facing = 0

    # --- draws -----------------------------------------------------------------------------------

    def below(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def one_of(self, values: Sequence[T]) -> T:
        return values[self.below(0, len(values))]

    def some_of(self, values: Sequence[T], count: int) -> list[T]:
        left, found = list(values), list[T]()
        while len(found) < count:
            found.append(left.pop(self.below(0, len(left))))
        return found

    def _door_cells(self) -> dict[tuple[int, int, int], int]:
        """Return where a door would be, by the room's row and column and the side's number."""
        rows, columns, found = self.level.rows, self.level.columns, {}
        for j in range(rows):
            for i in range(columns):
                left, top = i * self.span, j * self.span
                if i < columns - 1:
                    row = self.below(top + 1, top + self.span)
                    found[j, i, 0] = found[j, i + 1, 2] = row * self.width + left + self.span
                if j < rows - 1:
                    column = self.below(left + 1, left + self.span)
                    cell = (top + self.span) * self.width + column
                    found[j, i, 1] = found[j + 1, i, 3] = cell
        return found

    def add_door(self, j: int, i: int, side: int, color: str) -> None:
        cell = self.door_cells[j, i, side]
        self.walls.discard(cell)
        self.doors.append((color, cell))

    def place_agent(self, j: int | None = None, i: int | None = None) -> None:
        """Place the agent in a room, not right before a thing."""
        i = self.below(0, self.level.columns) if i is None else i
        j = self.below(0, self.level.rows) if j is None else j
        while True:
            self.column, self.row = -1, -1
            cell = self._empty_cell(j, i, apart=False)
            self.row, self.column = divmod(cell, self.width)
            self.facing = self.below(0, 4)
            right, down = STEPS[self.facing]
            front = (self.row + down) * self.width + self.column + right
            if front not in self._occupied() or front in self.walls:
                return

    def add_thing(self, kind: str, color: str, j: int = 0, i: int = 0) -> None:
        self.things.append((kind, color, self._empty_cell(j, i, apart=True)))

    def add_others(self, count: int, *, unique: bool) -> list[int]:
        """Place other things; with `unique` no two are alike. Returns their numbers."""
        first = len(self.things)
        while len(self.things) < first + count:
            color, kind = self.one_of(_COLORS), self.one_of(_KINDS)
            if unique and (kind, color) in [thing[:2] for thing in self.things]:
                continue
            i = self.below(0, self.level.columns)
            self.add_thing(kind, color, self.below(0, self.level.rows), i)
        return list(range(first, first + count))

    def _empty_cell(self, j: int, i: int, *, apart: bool) -> int:
        left, top = i * self.span, j * self.span
        for _ in range(_TRIES + 1):
            column = self.below(left, left + self.level.size)
            row = self.below(top, top + self.level.size)
            if row * self.width + column in self._occupied():
                continue
            distance = abs(column - self.column) + abs(row - self.row)
            if distance >= (2 if apart else 1):
                return row * self.width + column
        raise _Rejected

    def _occupied(self) -> set[int]:
        taken = {cell for _, _, cell in self.things} | {cell for _, cell in self.doors}
        return self.walls | taken

    # --- missions --------------------------------------------------------------------------------

    def need_reachable(self) -> None:
        """Refuse a room with a thing that cannot be reached past the others."""
        cells = {cell for _, _, cell in self.things}
        waiting, seen = [self.row * self.width + self.column], set()
        while waiting:
            here = waiting.pop()
            if here in seen:
                continue
            seen.add(here)
            if here not in cells and here not in self.walls:
                waiting += [here + 1, here - 1, here + self.width, here - self.width]
        if not cells <= seen:
            raise _Rejected

    def meant(self, kind: str, color: str | None = None, side: str | None = None) -> list[int]:
        """Return the numbers of the things, or doors, that a description fits, by columns."""
        all_of = [("door", *door) for door in self.doors] if kind == "door" else self.things
        fits = [
            (cell % self.width, cell // self.width, number)
            for number, (one, hue, cell) in enumerate(all_of)
            if one == kind and color in (None, hue) and (side is None or self._is_at(cell, side))
        ]
        return [number for *_, number in sorted(fits)]

    def _is_at(self, cell: int, side: str) -> bool:
        row, column = divmod(cell, self.width)
        left, top = self.column // self.span * self.span, self.row // self.span * self.span
        if not (left <= column <= left + self.span and top <= row <= top + self.span):
            return False
        (x, y), (v, w) = STEPS[self.facing], (column - self.column, row - self.row)
        ahead, right = x * v + y * w, x * w - y * v
        return {"left": right < 0, "right": right > 0, "front": ahead > 0, "behind": ahead < 0}[
            side
        ]

    def told(self, kind: str, color: str | None = None, side: str | None = None) -> str:
        name = f"{color} {kind}" if color else kind
        where = f" {_WHERE.get(side, f'on your {side}')}" if side else ""
        return f"{'a' if len(self.meant(kind, color, side)) > 1 else 'the'} {name}{where}"

    def finished(self, verb: str, what: tuple[Any, ...], to: tuple[Any, ...] = ()) -> Scene:
        level = self.level
        beside = self.meant(*to) if to else []
        words = f"{verb} {self.told(*what)}" + (f" next to {self.told(*to)}" if to else "")
        rows = [
            "".join("#" if row * self.width + c in self.walls else "." for c in range(self.width))
            for row in range(self.height)
        ]
        return Scene(
            self.name, tuple(rows), (self.column, self.row, self.facing), tuple(self.things),
            tuple(self.doors), verb, tuple(self.meant(*what)), tuple(beside), words,
            level.walks * level.size**2 * level.rows * level.columns,
        )  # fmt: skip


def _go_to_red_ball(room: _Room, *, grey: bool = False) -> Scene:
    room.place_agent()
    room.add_thing("ball", "red")
    room.add_others(room.level.others, unique=False)
    if grey:
        room.things[1:] = [(kind, "grey", cell) for kind, _, cell in room.things[1:]]
    room.need_reachable()
    return room.finished("go to", ("ball", "red"))


def _go_to_red_ball_grey(room: _Room) -> Scene:
    return _go_to_red_ball(room, grey=True)


def _go_to_object(room: _Room) -> Scene:
    room.place_agent()
    room.add_others(1, unique=True)
    return room.finished("go to", room.things[0][:2])


def _go_to_local(room: _Room) -> Scene:
    room.place_agent()
    things = room.add_others(room.level.others, unique=False)
    room.need_reachable()
    return room.finished("go to", room.things[room.one_of(things)][:2])


def _pick_up_by_place(room: _Room) -> Scene:
    room.rng.uniform(0, 1)  # whether there is a locked room: never
    room.add_others(room.level.others, unique=False)
    room.place_agent()
    room.need_reachable()
    room.one_of(("action",))
    room.one_of(("pick up",))
    for _ in range(_DESCRIPTIONS + 1):
        color, kind = room.one_of((None, *_COLORS)), room.one_of(("box", "ball", "key"))
        side = room.one_of(_SIDES) if room.below(0, 2) == 0 else None
        if room.meant(kind, color, side):
            return room.finished("pick up", (kind, color, side))
    raise _Rejected


def _put_next_local(room: _Room) -> Scene:
    room.place_agent()
    things = room.add_others(room.level.others, unique=True)
    room.need_reachable()
    one, other = (room.things[n] for n in room.some_of(things, 2))
    scene = room.finished("put", one[:2], other[:2])
    if is_beside(scene, one[2], other[2]):
        raise _Rejected
    return scene


def _open_red_door(room: _Room) -> Scene:
    room.add_door(0, 0, 0, "red")
    room.place_agent(0, 0)
    return room.finished("open", ("door", "red"))


def _open_door(room: _Room) -> Scene:
    for side, color in enumerate(room.some_of(_COLORS, 4)):
        room.add_door(1, 1, side, color)
    by = room.one_of(("color", "place"))
    what = ("door", room.doors[0][0]) if by == "color" else ("door", None, room.one_of(_SIDES))
    room.place_agent(1, 1)
    return room.finished("open", what)


LEVELS: Final = {
    "GoToRedBallNoDists": Level(_go_to_red_ball),
    "GoToObj": Level(_go_to_object),
    "GoToRedBallGrey": Level(_go_to_red_ball_grey, others=7),
    "GoToRedBall": Level(_go_to_red_ball, others=7),
    "GoToLocal": Level(_go_to_local, others=8),
    "PickupLoc": Level(_pick_up_by_place, others=8),
    "PutNextLocal": Level(_put_next_local, walks=2, others=8),
    "OpenRedDoor": Level(_open_red_door, size=5, columns=2),
    "OpenDoor": Level(_open_door, rows=3, columns=3),
}
"""The levels, by MiniGrid's names."""
