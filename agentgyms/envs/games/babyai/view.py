"""What the agent sees: MiniGrid's field of 7 by 7 cells ahead, in the words of BabyAI-Text.

Source: Carta et al. 2023, https://arxiv.org/abs/2302.02662.
"""

from __future__ import annotations

from typing import Final

from agentgyms.envs.games.babyai.world import (
    CARRIED,
    STEPS,
    Scene,
    State,
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
    cells = _field(scene, state)
    lit = {(0, 0)}
    for ahead in range(SIZE):
        for sides in (range(-_HALF, _HALF), range(_HALF, -_HALF, -1)):
            for right in sides:
                if (right, ahead) in lit and not _is_opaque(scene, state, cells[right, ahead]):
                    toward = right + sides.step
                    lit |= {(toward, ahead), (toward, ahead + 1), (right, ahead + 1)}
    return {place: cell for place, cell in cells.items() if place in lit}


def _field(scene: Scene, state: State) -> dict[tuple[int, int], int]:
    """Return the cells of the field of view by steps to the right and ahead."""
    ahead, right = STEPS[state.facing], STEPS[(state.facing + 1) % 4]
    width, height = len(scene.rows[0]), len(scene.rows)
    found = {}
    for i in range(-_HALF, _HALF + 1):
        for j in range(SIZE):
            column = state.column + right[0] * i + ahead[0] * j
            row = state.row + right[1] * i + ahead[1] * j
            inside = 0 <= column < width and 0 <= row < height
            found[i, j] = row * width + column if inside else -1
    return found


def _is_opaque(scene: Scene, state: State, cell: int) -> bool:
    door = door_at(scene, cell)
    return cell < 0 or (not state.opened[door] if door >= 0 else is_wall(scene, cell))


def described(scene: Scene, state: State) -> str:
    """Return the view in words, the nearest things first."""
    places = seen(scene, state)
    told = []
    for (right, ahead), cell in sorted(places.items(), key=lambda p: (_steps(p[0]), p[0])):
        name = _name(scene, state, cell) if (right, ahead) != (0, 0) else ""
        if name:
            told.append(f"You see {name} {_where(right, ahead)}.")
    walls = [place for place, cell in places.items() if cell < 0 or is_wall(scene, cell)]
    for line in ([p for p in walls if p[0] == 0], *_beside(walls)):
        if line:
            nearest = min(line, key=_steps)
            told.append(f"You see a wall {_where(*nearest)}.")
    if CARRIED in state.places:
        kind, color, _ = scene.things[state.places.index(CARRIED)]
        told.append(f"You carry a {color} {kind}.")
    return "\n".join(told)


def _beside(walls: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], ...]:
    """Return the walls straight to the left, and to the right."""
    level = [place for place in walls if place[1] == 0]
    return [p for p in level if p[0] < 0], [p for p in level if p[0] > 0]


def _steps(place: tuple[int, int]) -> int:
    return abs(place[0]) + place[1]


def _name(scene: Scene, state: State, cell: int) -> str:
    door = door_at(scene, cell)
    if door >= 0:
        return f"{'an open' if state.opened[door] else 'a closed'} {scene.doors[door][0]} door"
    if cell >= 0 and cell in state.places:
        kind, color, _ = scene.things[state.places.index(cell)]
        return f"a {color} {kind}"
    return ""


def _where(right: int, ahead: int) -> str:
    side = "right" if right > 0 else "left"
    told = [_counted(ahead, "forward")] if ahead else []
    return " and ".join(told + ([_counted(abs(right), side)] if right else []))


def _counted(number: int, direction: str) -> str:
    return f"{number} step{'s' * (number > 1)} {direction}"
