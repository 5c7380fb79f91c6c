"""NumberLine: add or subtract one until the current number is the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.pictures import Canvas, PicturedGame
from agentgyms.exact import Transition

_WORDS: Final = ("+", "-")
_LEAST: Final = 5
_MOST: Final = 500


class NumberLineEnv(PicturedGame):
    """NumberLine by the rules of RL4VLM's gym_cards.

    The actions are `+` and `-`; at its ends the line goes no further. The reward is 1 on the
    target, which ends the episode, -1 for a step that does not come nearer, else 0.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (twice as long), `sample` |
    | `size` | 5 | the greatest number of the line, from 5 to 500 |
    | `max_turns` | `None` | turns until the episode is truncated; None: 2 `size`, the original's |
    | `pictures` | `False` | observe a picture of both numbers in place of the text |
    | `oracle` | `False` | put the best action and its value into `info["oracle"]` |

    The original also deals lines that begin on their target; here none does.
    """

    default_max_turns = 2 * _LEAST
    words = _WORDS
    caption = "The picture shows the target and the current number."
    counts: ClassVar[Mapping[str, int]] = {
        "train": 20,
        "valid_seen": 10,
        "valid_unseen": 20,
        "sample": 4,
    }
    tools = Tools(
        Tool(
            "change",
            "Add one to the current number, or subtract one.",
            "{sign}",
            {"sign": Argument("+ adds, - subtracts.", choices=_WORDS)},
        ),
    )

    def __init__(self, *, size: int = 5, max_turns: int | None = None, **common: Any) -> None:
        if type(size) is not int or not _LEAST <= size <= _MOST:
            raise BadOption(f"size must be from {_LEAST} to {_MOST}, got {size!r}")
        super().__init__(max_turns=2 * size if max_turns is None else max_turns, **common)
        self._size = size

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the line's end, the start and the target."""
        chance, end = Chance("NumberLine", number), self._size * (1 + unseen)
        first, target = chance.below(end + 1), chance.below(end)
        return Board(f"0-{end}", (end, first, target + (target >= first)))

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        return "Make the current number equal to the target."

    def start(self) -> int:
        """Return the first number."""
        return int(self.board[1])

    def actions_in(self, state: int) -> Sequence[str]:
        """Return both signs; none on the target."""
        return () if state == self.board[2] else _WORDS

    def transitions(self, state: int, action: str) -> Sequence[Transition]:
        """Return the step."""
        end, _, target = self.board
        after = min(state + 1, end) if action == "+" else max(state - 1, 0)
        if after == target:
            return (Transition(1.0, after, 1.0, True, True, 1.0),)
        nearer = abs(after - target) < abs(state - target)
        return (Transition(1.0, after, 0.0 if nearer else -1.0),)

    def text(self, state: int) -> str:
        """Return both numbers, as the original's picture names them."""
        return f"Target: {self.board[2]}\nCurrent: {state}"

    def paint(self, canvas: Canvas, state: int) -> None:
        """Draw both numbers under their names."""
        for name, number, row in (("TARGET", self.board[2], 8), ("CURRENT", state, 52)):
            canvas.write(name, row, 10)
            canvas.write(str(number), row + 12, 10, 3)

    def is_state(self, state: Any) -> bool:
        """Return whether a value is a number of the line."""
        return type(state) is int and 0 <= state <= self.board[0]

    def progress(self, state: int) -> float:
        """Return the share of the way that is done."""
        _, first, target = self.board
        return max(0.0, 1 - abs(state - int(target)) / abs(int(first) - int(target)))

    def optimal_remaining(self) -> int:
        """Return the distance to the target."""
        return abs(int(self._state) - int(self.board[2]))
