"""Dialogues: what people do in their turns, whose turn it is, and when it is over.

The rules are those of `sotopia` 0.1.4: `ParallelSotopiaEnv` and `RuleBasedTerminatedEvaluator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The five types of action, by SOTOPIA's names and in the order in which prompts list them."""

    NONE = "none"
    SPEAK = "speak"
    NONVERBAL = "non-verbal communication"
    ACTION = "action"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Act:
    """What one person does in one turn.

    Attributes:
        kind: The type of action.
        argument: What is said or done; "" for `NONE` and `LEAVE`.
    """

    kind: Kind
    argument: str = ""

    def words(self) -> str:
        """Return it as others read it, without the person's name."""
        match self.kind:
            case Kind.NONE:
                return "did nothing"
            case Kind.SPEAK:
                return f'said: "{self.argument}"'
            case Kind.LEAVE:
                return "left the conversation"
            case _:
                return f"[{self.kind.value}] {self.argument}"


NOTHING: Final = Act(Kind.NONE)

Turn = tuple[tuple[int, Act], ...]
"""Who acted in one turn of the dialogue, and how: (seat, act), seats in order."""

Dialogue = Sequence[Turn]
"""Turns so far, from turn 0."""

ORDERS: Final = ("round-robin", "simultaneous")


class Ending(StrEnum):
    """Why a dialogue is over."""

    OPEN = ""
    LEFT = "left"
    STALE = "stale"
    TURN_LIMIT = "turn_limit"


@dataclass(frozen=True, slots=True)
class Rules:
    """When a dialogue is over, and who acts when.

    Attributes:
        order: `"round-robin"` (the benchmark's: seat 0 acts in turn 0) or `"simultaneous"`.
        max_turns: Turns of the dialogue; in round-robin order each is one person's.
        stale_turns: It is stale after more than so many acts of doing nothing in a row.
        masked_turns_count: Doing nothing because it is the other one's turn counts for that, as in
            the package; else only what acting people do counts.
    """

    order: str = "round-robin"
    max_turns: int = 20
    stale_turns: int = 2
    masked_turns_count: bool = False

    def acting(self, number: int) -> tuple[int, ...]:
        """Return the seats that act in the turn of this number."""
        return (0, 1) if self.order == "simultaneous" else (number % 2,)

    def ending(self, dialogue: Dialogue) -> Ending:
        """Return why the dialogue is over, `Ending.OPEN` if it is not.

        A dialogue that someone leaves in the last turn was left.
        """
        if dialogue and any(act.kind is Kind.LEAVE for _, act in dialogue[-1]):
            return Ending.LEFT
        if self._idle(dialogue) > self.stale_turns:
            return Ending.STALE
        return Ending.TURN_LIMIT if len(dialogue) >= self.max_turns else Ending.OPEN

    def _idle(self, dialogue: Dialogue) -> int:
        """Return how many acts of doing nothing the dialogue ends with."""
        idle = 0
        for turn in reversed(dialogue):
            acts = dict(turn)
            for seat in (1, 0):
                if seat not in acts and not self.masked_turns_count:
                    continue
                if acts.get(seat, NOTHING).kind is not Kind.NONE:
                    return idle
                idle += 1
        return idle
