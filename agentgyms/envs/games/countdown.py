"""Countdown: make the target of all numbers, two at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.game import Game
from agentgyms.exact import Transition

_ACTION: Final = re.compile(r"(\d{1,9})\s*([-+*/])\s*(\d{1,9})")
_LARGEST: Final = 99
_TARGETS: Final = (10, 99)


class CountdownEnv(Game):
    """Countdown with the numbers of TinyZero and RAGEN, played step by step.

    The action `12 + 7` replaces two numbers by their result: a sum, a difference that is not
    negative, a product, or a quotient without remainder. One number is left after one turn less
    than there are numbers; the reward is then 1 if it is the target, else 0.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (a number more), `sample` |
    | `numbers` | 4 | the most numbers of a board, 3 to 5; each has it or one less, at least 3 |
    | `max_turns` | 8 | turns until the episode is truncated |
    | `oracle` | `False` | put the next step of a solution into `info["oracle"]` |

    Numbers are 1 to 99, targets 10 to 99, and each target can be made. TinyZero and RAGEN ask for
    the whole formula in one turn, and allow negative numbers and fractions on the way.
    """

    default_max_turns = 8
    tools = Tools(
        Tool(
            "combine",
            "Replace two of the numbers by their result.",
            "{first} {operator} {second}",
            {
                "first": Argument("The first number.", "integer"),
                "operator": Argument("What to do.", choices=("+", "-", "*", "/")),
                "second": Argument("The second number.", "integer"),
            },
        ),
    )
    words = ("<number> + <number>", "<number> - <number>", "<number> * <number>")

    def __init__(self, *, numbers: int = 4, **common: Any) -> None:
        if type(numbers) is not int or not 3 <= numbers <= 5:
            raise BadOption(f"numbers must be from 3 to 5, got {numbers!r}")
        super().__init__(**common)
        self._numbers = numbers

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the numbers, and a target that a random play of them reached."""
        chance = Chance("Countdown", number)
        count = (
            self._numbers + 1
            if unseen
            else chance.between(max(3, self._numbers - 1), self._numbers)
        )
        while True:
            first = tuple(sorted(chance.between(1, _LARGEST) for _ in range(count)))
            left = first
            while len(left) > 1:
                left = _results(left)[chance.pick(list(_results(left)))]
            if _TARGETS[0] <= left[0] <= _TARGETS[1]:
                return Board(f"{count}-numbers", (first, left[0]))

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        return f"Combine all numbers into {self.board[1]}."

    def start(self) -> tuple[int, ...]:
        """Return the numbers."""
        numbers: tuple[int, ...] = self.board[0]
        return numbers

    def read(self, action: str) -> str:
        """Return the step in an action as it is listed: the larger number first."""
        match = _ACTION.fullmatch(action.strip())
        if match is None or not action.isascii():
            return ""
        one, operator, two = int(match[1]), match[2], int(match[3])
        if operator in "+*":
            one, two = max(one, two), min(one, two)
        return f"{one} {operator} {two}"

    def actions_in(self, state: tuple[int, ...]) -> Sequence[str]:
        """Return the possible steps; none with one number."""
        return tuple(_results(state))

    def transitions(self, state: tuple[int, ...], action: str) -> Sequence[Transition]:
        """Return the numbers after the step."""
        after = _results(state)[action]
        right = after == (self.board[1],)
        return (Transition(1.0, after, float(right), len(after) == 1, right, float(right)),)

    def text(self, state: tuple[int, ...]) -> str:
        """Return the target and the numbers, as RAGEN writes them."""
        return f"Target: {self.board[1]}, nums: {list(state)}"

    def is_state(self, state: Any) -> bool:
        """Return whether a value is sorted numbers, no more than the board has."""
        fits = isinstance(state, tuple) and 1 <= len(state) <= len(self.board[0])
        return (
            fits and all(type(n) is int and n >= 0 for n in state) and state == tuple(sorted(state))
        )

    def progress(self, state: tuple[int, ...]) -> float:
        """Return the share of the steps that are taken; 0 if the target cannot be made any more."""
        steps = len(self.board[0]) - 1
        return (steps + 1 - len(state)) / steps if can_make(state, self.board[1]) else 0.0

    def expert_in(self, state: tuple[int, ...], turn: int) -> str:
        """Return the first step after which the target can be made, or any; "" at the end."""
        steps, target = _results(state), self.board[1]
        good = (name for name, after in steps.items() if can_make(after, target))
        return next(good, next(iter(steps), ""))

    def optimal_value(self) -> float:
        """Return 1 if the target can be made in the turns that are left, else 0."""
        left = self.optimal_remaining()
        return float(0 < left <= self.turns_left)

    def optimal_remaining(self) -> int:
        """Return the steps to the target, -1 if it cannot be made."""
        return len(self._state) - 1 if can_make(self._state, self.board[1]) else -1


@lru_cache(maxsize=1 << 17)
def _results(numbers: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the numbers after each possible step, by its name."""
    found: dict[str, tuple[int, ...]] = {}
    for i, j in combinations(range(len(numbers)), 2):
        small, large = numbers[i], numbers[j]  # sorted
        rest = [n for k, n in enumerate(numbers) if k not in (i, j)]
        made = {"+": large + small, "-": large - small, "*": large * small}
        if small and large % small == 0:
            made["/"] = large // small
        for operator, result in made.items():
            found.setdefault(f"{large} {operator} {small}", tuple(sorted([*rest, result])))
    return found


@lru_cache(maxsize=1 << 17)
def can_make(numbers: tuple[int, ...], target: int) -> bool:
    """Return whether a target can be made of all numbers."""
    if len(numbers) == 1:
        return numbers[0] == target
    return any(can_make(after, target) for after in _results(numbers).values())
