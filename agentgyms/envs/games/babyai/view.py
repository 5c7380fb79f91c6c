"""What the agent sees: MiniGrid's 7 by 7 cells in the words of BabyAI-Text (arXiv:2302.02662)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from agentgyms.envs.games.babyai.world import (
    CARRIED,
    STEPS,
    Scene,
    State,
    closed,
    door_at,
    is_wall,
)

SIZE: Final = 7
_HALF: Final = SIZE // 2


def seen(scene: Scene, state: State) -> dict[tuple[int, int], int]:
    """Return the visible cells by steps to the right and ahead; -1 is a cell off the grid.

    Light goes from the agent on, row by row, to both sides and ahead, and stops at walls and
    closed doors, which are visible themselves.
    """
    size = len(scene.rows[0]), len(scene.rows)
    opaque = _ends(scene) | closed(scene, state.opened)
    found, lit = {}, 1 << _HALF
    for ahead, cells in enumerate(_field(size, (state.column, state.row), state.facing)):
        clear = sum([1 << n for n, cell in enumerate(cells) if cell not in opaque])
        here, lit = _lit(lit, clear)
        found.update({(n - _HALF, ahead): cell for n, cell in enumerate(cells) if here >> n & 1})
    return found


@lru_cache(maxsize=1 << 14)
def _lit(lit: int, clear: int) -> tuple[int, int]:
    """Return the lit places of a row, and those of the next row, as bits from left to right.

    `lit` are the places that the row before lights, `clear` those that light passes.
    """
    after = 0
    for places, step in ((range(SIZE - 1), 1), (range(SIZE - 1, 0, -1), -1)):
        for place in places:
            if lit & clear & 1 << place:
                lit |= 1 << place + step
                after |= 1 << place | 1 << place + step
    return lit, after


@lru_cache(maxsize=2048)
def _field(size: tuple[int, int], place: tuple[int, int], facing: int) -> list[list[int]]:
    """Return the cells of the field of view, row by row ahead; -1 is a cell off the grid."""
    ahead, right = STEPS[facing], STEPS[(facing + 1) % 4]
    rows = []
    for j in range(SIZE):
        sides = range(-_HALF, _HALF + 1)
        columns = [place[0] + right[0] * i + ahead[0] * j for i in sides]
        lines = [place[1] + right[1] * i + ahead[1] * j for i in sides]
        rows.append([
            row * size[0] + column if 0 <= column < size[0] and 0 <= row < size[1] else -1
            for column, row in zip(columns, lines, strict=True)
        ])  # fmt: skip
    return rows


@lru_cache(maxsize=4096)
def _ends(scene: Scene) -> frozenset[int]:
    """Return the cells with a wall, and -1, which is a cell off the grid."""
    cells = range(len(scene.rows) * len(scene.rows[0]))
    return frozenset([-1, *(cell for cell in cells if is_wall(scene, cell))])


def described(scene: Scene, state: State) -> str:
    """Return the view in words, the nearest things first."""
    places = seen(scene, state)
    named = {*state.places, *(cell for _, cell in scene.doors)}
    seen_things = [p for p, cell in places.items() if cell >= 0 and cell in named and p != (0, 0)]
    told = [
        f"You see {_name(scene, state, places[place])} {_where(*place)}."
        for place in sorted(seen_things, key=lambda p: (_steps(p), p))
    ]
    ends = _ends(scene)
    walls = [place for place, cell in places.items() if cell in ends]
    for line in ([p for p in walls if p[0] == 0], *_beside(walls)):
        if line:
            nearest = min(line, key=_steps)
            told.append(f"You see a wall {_where(*nearest)}.")
    if CARRIED in state.places:
        kind, color, _ = scene.things[state.places.index(CARRIED)]
        told.append(f"You carry a {color} {kind}.")
    return "\n".join(told)


def _beside(walls: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], ...]:
    level = [place for place in walls if place[1] == 0]
    return [p for p in level if p[0] < 0], [p for p in level if p[0] > 0]


def _steps(place: tuple[int, int]) -> int:
    return abs(place[0]) + place[1]


def _name(scene: Scene, state: State, cell: int) -> str:
    door = door_at(scene, cell)
    if door >= 0:
        return f"{'an open' if state.opened[door] else 'a closed'} {scene.doors[door][0]} door"
    kind, color, _ = scene.things[state.places.index(cell)]
    return f"a {color} {kind}"


def _where(right: int, ahead: int) -> str:
    side = "right" if right > 0 else "left"
    told = [_counted(ahead, "forward")] if ahead else []
    return " and ".join(told + ([_counted(abs(right), side)] if right else []))


def _counted(number: int, direction: str) -> str:
    return f"{number} step{'s' * (number > 1)} {direction}"
