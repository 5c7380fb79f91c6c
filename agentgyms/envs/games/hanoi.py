"""Tower of Hanoi: move the discs, one at a time, onto the third peg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, ClassVar, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.game import Game
from agentgyms.exact import Transition

_PEGS: Final = "ABC"
_WORDS: Final = tuple(f"{one} {two}" for one, two in permutations(_PEGS, 2))
_GOAL: Final = 2
_MOST_DISCS: Final = 7


class TowerOfHanoiEnv(Game):
    """The Tower of Hanoi from any legal arrangement of its discs.

    The action `A C` moves the top disc of peg A onto peg C; no disc may lie on a smaller one. The
    reward is 1 when all discs are on C, which ends the episode, else 0.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (a disc more), `sample` |
    | `discs` | 4 | number of discs, from 4 to 7 |
    | `max_turns` | `None` | turns until the episode is truncated; None: 2 ** (`discs` + 1) |
    | `oracle` | `False` | put the best action and its value into `info["oracle"]` |

    `info["progress"]` is the done share of the shortest solution.
    """

    default_max_turns = 32
    words = _WORDS
    counts: ClassVar[Mapping[str, int]] = {
        "train": 60,
        "valid_seen": 20,
        "valid_unseen": 100,
        "sample": 8,
    }
    tools = Tools(
        Tool(
            "move_disc",
            "Move the top disc of a peg onto another peg.",
            "{from_peg} {to_peg}",
            {
                "from_peg": Argument("The peg to take it from.", choices=tuple(_PEGS)),
                "to_peg": Argument("The peg to put it on.", choices=tuple(_PEGS)),
            },
        ),
    )

    def __init__(self, *, discs: int = 4, max_turns: int | None = None, **common: Any) -> None:
        if type(discs) is not int or not 4 <= discs <= _MOST_DISCS:
            raise BadOption(f"discs must be from 4 to {_MOST_DISCS}, got {discs!r}")
        super().__init__(max_turns=2 ** (discs + 1) if max_turns is None else max_turns, **common)
        self._discs = discs

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the peg of each disc, from the smallest disc on."""
        chance, discs = Chance("TowerOfHanoi", number), self._discs + unseen
        while True:
            pegs = tuple(chance.below(3) for _ in range(discs))
            if distance(pegs):
                return Board(f"{discs}-discs", pegs)

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        return "Move all discs onto peg C; no disc may lie on a smaller one."

    def start(self) -> tuple[int, ...]:
        """Return the arrangement of the board."""
        arrangement: tuple[int, ...] = self.board
        return arrangement

    def actions_in(self, state: tuple[int, ...]) -> Sequence[str]:
        """Return the moves that put a disc on an empty peg or on a larger disc; none at the end."""
        if not distance(state):
            return ()
        top = {peg: state.index(peg) if peg in state else len(state) for peg in range(3)}
        return tuple(
            f"{_PEGS[one]} {_PEGS[two]}" for one, two in permutations(range(3), 2)
            if top[one] < top[two]
        )  # fmt: skip

    def transitions(self, state: tuple[int, ...], action: str) -> Sequence[Transition]:
        """Return the move."""
        one, two = (_PEGS.index(peg) for peg in action.split(" "))
        disc = state.index(one)
        after = (*state[:disc], two, *state[disc + 1 :])
        solved = not distance(after)
        return (Transition(1.0, after, float(solved), solved, solved, float(solved)),)

    def text(self, state: tuple[int, ...]) -> str:
        """Return the discs of each peg, the largest one, at the bottom, first."""
        pegs = [
            " ".join(str(disc + 1) for disc in reversed(range(len(state))) if state[disc] == peg)
            for peg in range(3)
        ]
        return "\n".join(f"{name}: {discs or '-'}" for name, discs in zip(_PEGS, pegs, strict=True))

    def is_state(self, state: Any) -> bool:
        """Return whether a value has a peg for each disc."""
        fits = isinstance(state, tuple) and len(state) == len(self.board)
        return fits and all(type(peg) is int and 0 <= peg <= 2 for peg in state)

    def progress(self, state: tuple[int, ...]) -> float:
        """Return the done share of the shortest solution."""
        whole = distance(self.board)
        return max(0, whole - distance(state)) / whole

    def optimal_remaining(self) -> int:
        """Return the moves of a shortest solution."""
        return distance(self._state)


def distance(pegs: Sequence[int]) -> int:
    """Return the fewest moves that bring all discs onto the third peg.

    A disc that is not where it is wanted, the largest first, needs all smaller ones on the peg that
    is neither, and then 2 ** k moves for itself and for the k smaller ones that follow it.
    Reference: Hinz et al. 2013, The Tower of Hanoi: Myths and Maths, section 2.2.
    """
    wanted, moves = _GOAL, 0
    for disc in reversed(range(len(pegs))):
        if pegs[disc] != wanted:
            moves += 2**disc
            wanted = 3 - pegs[disc] - wanted
    return moves
