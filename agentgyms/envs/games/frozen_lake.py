"""FrozenLake: walk over slippery ice to the goal, past the holes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from gymnasium.utils import seeding

from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.game import Game
from agentgyms.exact import Transition

_STEPS: Final = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
"""In Gymnasium's order: ice carries to the side by the neighbours in it."""
_WORDS: Final = tuple(_STEPS)
_SIGNS: Final = {"S": "_", "F": "_", "H": "O", "G": "G"}
_UNDER_PLAYER: Final = {"S": "P", "F": "P", "H": "X", "G": "√"}
_LEGEND: Final = "P you, _ ice, O hole, G goal, X you in a hole, √ you on the goal"
_MOST_SIDE: Final = 16


class FrozenLakeEnv(Game):
    """FrozenLake by Gymnasium's rules, in RAGEN's text and on its maps.

    The actions are `left`, `down`, `right` and `up`. The reward is 1 on the goal, else 0; goal and
    holes end the episode. On slippery ice a step goes as intended with probability `success_rate`,
    else to one of both sides; into the border nobody moves.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (one cell longer), `sample` |
    | `size` | 4 | rows and columns, from 2 to 16 |
    | `frozen` | 0.8 | probability that a cell of a generated map is ice, in (0, 1] |
    | `slippery` | `True` | whether steps slip |
    | `success_rate` | `1 / 3` | probability of the intended step on slippery ice, in (0, 1] |
    | `maps` | `"ragen"` | start and goal anywhere; `"gymnasium"`: in the corners |
    | `max_turns` | 20 | turns until the episode is truncated; Gymnasium's own limit is 100 |
    | `oracle` | `False` | put the best action and its value into `info["oracle"]` |

    A map is that of its number: RAGEN and Gymnasium generate the same one from it as a seed.
    `info["progress"]` is the walked share of the shortest way to the goal, slips aside.
    """

    default_max_turns = 20
    stochastic = True
    words = _WORDS
    tools = Tools(
        Tool(
            "walk",
            "Walk one cell over the ice.",
            "{direction}",
            {"direction": Argument("Where to walk.", choices=_WORDS)},
        ),
    )

    def __init__(
        self,
        *,
        size: int = 4,
        frozen: float = 0.8,
        slippery: bool = True,
        success_rate: float = 1 / 3,
        maps: str = "ragen",
        **common: Any,
    ) -> None:
        super().__init__(**common)
        if type(size) is not int or not 2 <= size <= _MOST_SIDE:
            raise BadOption(f"size must be from 2 to {_MOST_SIDE}, got {size!r}")
        for name, share in (("frozen", frozen), ("success_rate", success_rate)):
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
                raise BadOption(f"{name} must be a number in (0, 1], got {share!r}")
        if not isinstance(slippery, bool):
            raise BadOption(f"slippery must be True or False, got {slippery!r}")
        if maps not in ("ragen", "gymnasium"):
            raise BadOption(f"maps {maps!r} is unknown: expected one of ragen, gymnasium")
        self._size, self._frozen, self._maps = size, float(frozen), maps
        self.stochastic, self._rate = slippery and success_rate < 1, float(success_rate)

    def rules(self) -> Sequence[Any]:
        """Return what decides where a step ends."""
        return [self._rate if self.stochastic else 1.0]

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the map that the peer generates from a seed."""
        size = self._size + unseen
        make = random_map if self._maps == "gymnasium" else random_map_anywhere
        return Board(f"{size}x{size}", make(size, self._frozen, number))

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        return "Walk over the ice to the goal G without falling into a hole O."

    def start(self) -> int:
        """Return the number of the start's cell."""
        return "".join(self.board).index("S")

    def actions_in(self, state: int) -> Sequence[str]:
        """Return the four steps; none on the goal and in a hole."""
        return () if self._cell(state) in "GH" else _WORDS

    def transitions(self, state: int, action: str) -> Sequence[Transition]:
        """Return the intended step, and the ones to its sides where the ice is slippery."""
        a = _WORDS.index(action)
        if not self.stochastic:
            return (self._step(state, a, 1.0),)
        aside = (1.0 - self._rate) / 2
        chances = ((a - 1, aside), (a, self._rate), (a + 1, aside))
        return tuple(self._step(state, b % 4, chance) for b, chance in chances)

    def _step(self, state: int, number: int, probability: float) -> Transition:
        last, (down, right) = len(self.board) - 1, _STEPS[_WORDS[number]]
        row, column = divmod(state, len(self.board))
        row, column = min(max(row + down, 0), last), min(max(column + right, 0), last)
        cell, solved = self.board[row][column], self.board[row][column] == "G"
        after = row * len(self.board) + column
        return Transition(probability, after, float(solved), cell in "GH", solved, float(solved))

    def text(self, state: int) -> str:
        """Return the map as RAGEN draws it, with a legend."""
        cells = [_SIGNS[cell] for row in self.board for cell in row]
        cells[state], side = _UNDER_PLAYER[self._cell(state)], len(self.board)
        rows = ["".join(cells[i : i + side]) for i in range(0, len(cells), side)]
        return "\n".join([*rows, _LEGEND])

    def is_state(self, state: Any) -> bool:
        """Return whether a value is the number of a cell."""
        return type(state) is int and 0 <= state < len(self.board) ** 2

    def progress(self, state: int) -> float:
        """Return the walked share of the shortest way; 0 in a hole."""
        left, whole = (distances(self.board).get(s, -1) for s in (state, self.start()))
        return max(0, whole - left) / whole if left >= 0 else 0.0

    def optimal_remaining(self) -> int:
        """Return the steps to the goal on ice that is not slippery, -1 in a hole."""
        return distances(self.board).get(self._state, -1)

    def _cell(self, state: int) -> str:
        return str(self.board[state // len(self.board)][state % len(self.board)])


@lru_cache(maxsize=4096)
def distances(board: Sequence[str]) -> dict[int, int]:
    """Return the steps to the goal from each cell that has a way to it and is no hole."""
    side, cells = len(board), "".join(board)
    found, waiting = {cells.index("G"): 0}, deque([cells.index("G")])
    while waiting:
        here = waiting.popleft()
        for down, right in _STEPS.values():
            row, column = here // side + down, here % side + right
            there = row * side + column
            inside = 0 <= row < side and 0 <= column < side
            if inside and there not in found and cells[there] != "H":
                found[there] = found[here] + 1
                waiting.append(there)
    return found


def random_map(size: int, frozen: float, seed: int) -> tuple[str, ...]:
    """Return Gymnasium's map of a seed: start and goal in the corners."""
    rng, _ = seeding.np_random(seed)
    while True:
        cells = rng.choice(["F", "H"], (size, size), p=[frozen, 1 - frozen])
        cells[0, 0], cells[-1, -1] = "S", "G"
        board = tuple("".join(row) for row in cells)
        if 0 in distances(board):
            return board


def random_map_anywhere(size: int, frozen: float, seed: int) -> tuple[str, ...]:
    """Return RAGEN's map: start and goal on any two cells (ragen/env/frozen_lake/utils.py)."""
    rng, _ = seeding.np_random(seed)
    while True:
        cells = rng.choice(["F", "H"], (size, size), p=[frozen, 1 - frozen])
        start, goal = (tuple(rng.integers(size, size=2)) for _ in range(2))
        if start == goal:
            continue
        cells[start], cells[goal] = "S", "G"
        board = tuple("".join(row) for row in cells)
        if int(start[0]) * size + int(start[1]) in distances(board):
            return board
