"""Minesweeper: reveal all cells that have no mine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import BadOption
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.game import Game
from agentgyms.exact import Transition

_ACTION: Final = re.compile(r"\(?\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)?")
_MOST_PLACEMENTS: Final = 60_000
_MOST_SIDE: Final = 10
_WIN, _MINE, _USELESS, _ONE, _SEVERAL = 10.0, -0.1, -1.0, 0.5, 2.0


class MinesweeperEnv(Game):
    """Minesweeper with size, text and rewards of LaMer, which is built on verl-agent.

    The action `(2, 3)` reveals the cell in row 2, column 3, counted from 1; a cell without mines
    around it reveals its neighbours. One cell is revealed at the start. Rewards: 10 when all cells
    without a mine are revealed, -0.1 for a mine, which both end the episode; 2 for several cells,
    0.5 for one, -1 for a cell that is revealed already or is not on the board.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (a row, a column more), `sample` |
    | `size` | 6 | rows and columns, from 3 to 9 |
    | `mines` | 3 | number of mines; all places for them are at most 60,000 |
    | `boards` | `"logical"` | boards that need no guess; `"any"`: those that chance places |
    | `max_turns` | 15 | turns until the episode is truncated |
    | `oracle` | `False` | put the safest cell and what is known of it into `info["oracle"]` |

    The expert knows what the board shows: it weighs all places that the mines can have, and reveals
    the cell that is least often a mine, of equal ones that which is most often blank. On logical
    boards it always wins, in at most `max_turns` turns. `info["progress"]` is the revealed share.
    The oracle has `mine_probability` of the best cell, and `optimal_remaining`, the fewest turns of
    one who knows the mines.
    """

    default_max_turns = 15
    counts: ClassVar[Mapping[str, int]] = {
        "train": 500,
        "valid_seen": 100,
        "valid_unseen": 50,
        "sample": 12,
    }
    words = ("(<row>, <column>)",)
    tools = Tools(
        Tool(
            "reveal",
            "Reveal a cell.",
            "({row}, {column})",
            {
                "row": Argument("Its row, from 1.", "integer"),
                "column": Argument("Its column, from 1.", "integer"),
            },
        ),
    )

    def __init__(
        self, *, size: int = 6, mines: int = 3, boards: str = "logical", **common: Any
    ) -> None:
        super().__init__(**common)
        if type(size) is not int or not 3 <= size < _MOST_SIDE:
            raise BadOption(f"size must be from 3 to {_MOST_SIDE - 1}, got {size!r}")
        places = comb((size + 1) ** 2, mines) if type(mines) is int and mines > 0 else 0
        if not 0 < places <= _MOST_PLACEMENTS or mines > size**2 - 2:
            raise BadOption(
                f"mines must be a number from 1 on, with at most {_MOST_PLACEMENTS} places in "
                f"{(size + 1) ** 2} cells and two cells free, got {mines!r}"
            )
        if boards not in ("logical", "any"):
            raise BadOption(f"boards {boards!r} is unknown: expected one of logical, any")
        self._size, self._mines, self._logical = size, mines, boards == "logical"

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the side, the mines and the first cell; a blank one where there is one."""
        chance, side = Chance("Minesweeper", number), self._size + unseen
        while True:
            cells = chance.sample(range(side**2), self._mines + 1)
            mines, first = tuple(sorted(cells[:-1])), cells[-1]
            field = _field(side, mines)
            shown = _opened(field, 0, first)
            if shown != field.safe and (not self._logical or self._is_logical(field, shown)):
                return Board(f"{side}x{side}", (side, mines, first))

    def _is_logical(self, field: _Field, shown: int) -> bool:
        """Return whether the expert wins in time without a guess."""
        for _ in range(self.max_turns):
            cell, chance = _safest(field, shown)
            if chance:
                return False
            shown = _opened(field, shown, cell)
            if shown == field.safe:
                return True
        return False

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        return f"Reveal all cells that have no mine; {len(self.board[1])} have one."

    def _lay(self, board: Any) -> None:
        super()._lay(board)
        side, mines, first = board
        self._field = _field(side, mines)
        self._first, self._cells = _opened(self._field, 0, first), _cells(side)

    def start(self) -> tuple[int, int]:
        """Return the revealed cells, as bits, and -1 for no mine that was hit."""
        return self._first, -1

    def coded(self, state: tuple[int, int]) -> str:
        """Return both numbers as JSON."""
        return f"[{state[0]},{state[1]}]"

    def read(self, action: str) -> str:
        """Return a cell as it is listed; brackets may be left out."""
        if action in self._cells:
            return action
        match = _ACTION.fullmatch(action.strip())
        return f"({int(match[1])}, {int(match[2])})" if match and action.isascii() else ""

    def actions_in(self, state: tuple[int, int]) -> Sequence[str]:
        """Return the cells that are not revealed; none at the end."""
        shown, mine = state
        if mine >= 0 or shown == self._field.safe:
            return ()
        return tuple([name for name, cell in self._cells.items() if not shown >> cell & 1])

    def transitions(self, state: tuple[int, int], action: str) -> Sequence[Transition]:
        """Return the board after a cell is revealed."""
        cell, field = self._cells[action], self._field
        if cell in field.mines:
            return (Transition(1.0, (state[0], cell), _MINE, over=True),)
        after = _opened(field, state[0], cell)
        if after == field.safe:
            return (Transition(1.0, (after, -1), _WIN, True, True, 1.0),)
        several = (after ^ state[0]).bit_count() > 1
        return (Transition(1.0, (after, -1), _SEVERAL if several else _ONE),)

    def illegal(self, state: tuple[int, int], action: str) -> Transition:
        """Return what a cell that is revealed or not on the board leads to."""
        return Transition(1.0, state, _USELESS)

    def text(self, state: tuple[int, int]) -> str:
        """Return the board in LaMer's signs: ? hidden, . blank, * mine."""
        (shown, mine), side = state, self.board[0]
        signs = [sign if shown >> cell & 1 else "?" for cell, sign in enumerate(self._field.signs)]
        if mine >= 0:
            signs[mine] = "*"
        line = " ".join(signs)
        return "\n".join([line[i : i + 2 * side - 1] for i in range(0, len(line), 2 * side)])

    def is_state(self, state: Any) -> bool:
        """Return whether a value is revealed cells and a mine or none."""
        fits = isinstance(state, tuple) and [type(part) for part in state] == [int, int]
        if not fits or state[0] < 0 or state[0] & ~self._field.safe:
            return False
        return state[1] == -1 or state[1] in self._field.mines

    def progress(self, state: tuple[int, int]) -> float:
        """Return the revealed share of what was hidden at the start."""
        first, safe = self._first.bit_count(), self._field.safe.bit_count()
        return (state[0].bit_count() - first) / (safe - first)

    def expert_in(self, state: tuple[int, int], turn: int) -> str:
        """Return the safest cell by what the board shows; "" at the end."""
        if not self._face(state).actions:
            return ""
        return tuple(self._cells)[_safest(self._field, state[0])[0]]

    def solution(self) -> dict[str, Any]:
        """Return the expert's action, the chance that it hits a mine, and the fewest turns left."""
        told = {**self.expert_actions(), "optimal_remaining": self.optimal_remaining()}
        over = not told["best"]
        return {
            **told,
            "mine_probability": 0.0 if over else _safest(self._field, self._state[0])[1],
        }

    def optimal_value(self) -> float:
        """Raise `BadOption`: the best value without knowledge of the mines is not computed."""
        raise BadOption("Minesweeper's optimal value is not known: the mines are hidden")

    def optimal_remaining(self) -> int:
        """Return the fewest turns of one who knows the mines, -1 after one was hit."""
        field, shown, turns = self._field, self._state[0], 0
        if self._state[1] >= 0:
            return -1
        for wanted in (0, 1):  # blank areas first: they reveal the cells around them
            for cell in range(self.board[0] ** 2):
                hidden = field.safe >> cell & 1 and not shown >> cell & 1
                if hidden and (field.around[cell] == 0 or wanted):
                    shown, turns = _opened(field, shown, cell), turns + 1
        return turns


class _Field(NamedTuple):
    side: int
    mines: tuple[int, ...]
    around: tuple[int, ...]  # mines around each cell
    safe: int  # the cells without a mine, as bits
    signs: str  # that of each cell where it is revealed


@lru_cache(maxsize=64)
def _cells(side: int) -> dict[str, int]:
    return {f"({cell // side + 1}, {cell % side + 1})": cell for cell in range(side**2)}


@lru_cache(maxsize=64)
def _neighbours(side: int) -> tuple[tuple[int, ...], ...]:
    places = [divmod(cell, side) for cell in range(side**2)]
    return tuple(
        tuple(
            other
            for other, (r, c) in enumerate(places)
            if other != cell and abs(r - row) <= 1 and abs(c - column) <= 1
        )
        for cell, (row, column) in enumerate(places)
    )


@lru_cache(maxsize=8192)
def _field(side: int, mines: tuple[int, ...]) -> _Field:
    around = tuple(sum(n in mines for n in cells) for cells in _neighbours(side))
    safe = (1 << side**2) - 1 - sum(1 << mine for mine in mines)
    return _Field(side, mines, around, safe, "".join(str(n or ".") for n in around))


def _opened(field: _Field, shown: int, cell: int) -> int:
    """Return the revealed cells after a safe one is revealed, with all that follows from it."""
    waiting = [cell]
    while waiting:
        here = waiting.pop()
        if not shown >> here & 1:
            shown |= 1 << here
            if field.around[here] == 0:
                waiting += _neighbours(field.side)[here]
    return shown


@lru_cache(maxsize=4)
def _placements(side: int, mines: int) -> tuple[NDArray[np.bool_], NDArray[np.int8]]:
    """Return all places of the mines, and the mines around each cell then. Shape [M, S] each."""
    places = np.array(list(combinations(range(side**2), mines)))
    has = np.zeros((len(places), side**2), np.bool_)
    has[np.arange(len(places))[:, None], places] = True
    near = np.zeros((side**2, side**2), np.int8)
    for cell, others in enumerate(_neighbours(side)):
        near[list(others), cell] = 1
    return has, has.astype(np.int8) @ near


@lru_cache(maxsize=1 << 15)
def _safest(field: _Field, shown: int) -> tuple[int, float]:
    """Return the hidden cell least often a mine, and how often, over all places that fit."""
    has, around = _placements(field.side, len(field.mines))
    cells = np.array([shown >> cell & 1 for cell in range(field.side**2)], np.bool_)
    numbers = np.array(field.around, np.int8)[cells]
    fits = ~has[:, cells].any(axis=1) & (around[:, cells] == numbers).all(axis=1)
    mine = np.where(cells, 2.0, has[fits].mean(axis=0))
    blank = (~has[fits] & (around[fits] == 0)).mean(axis=0)
    best = int(np.lexsort((-blank, mine))[0])
    return best, float(mine[best])
