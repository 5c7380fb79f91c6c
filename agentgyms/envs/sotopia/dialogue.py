"""Dialogues by the rules of `sotopia` 0.1.4: ParallelSotopiaEnv, RuleBasedTerminatedEvaluator."""

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
    """The act of one person in one turn; the argument is "" for `NONE` and `LEAVE`."""

    kind: Kind
    argument: str = ""

    def describe(self) -> str:
        """Return the act as text for others, without the person's name."""
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
"""The acts of one turn: (seat, act) pairs, in order of seats."""

Dialogue = Sequence[Turn]
"""Turns so far, from turn 0."""

ORDERS: Final = ("round-robin", "simultaneous")


class Ending(StrEnum):
    """Why a dialogue ended; `OPEN` if it has not."""

    OPEN = ""
    LEFT = "left"
    STALE = "stale"
    TURN_LIMIT = "turn_limit"


@dataclass(frozen=True, slots=True)
class Rules:
    """When a dialogue ends, and which seats act in which turn."""

    # `"round-robin"` (the benchmark's: seat 0 acts in turn 0) or `"simultaneous"`.
    order: str = "round-robin"
    max_turns: int = 20  # turns of the dialogue; in round-robin order each is one person's
    stale_turns: int = 2  # the dialogue is stale after more `none` acts in a row than this
    # Waiting for the other person's turn counts as a `none` act, as in the package; otherwise only
    # acts of acting people count.
    masked_turns_count: bool = False

    def acting(self, number: int) -> tuple[int, ...]:
        """Return the seats that act in the turn of this number."""
        return (0, 1) if self.order == "simultaneous" else (number % 2,)

    def ending(self, dialogue: Dialogue) -> Ending:
        """Return why the dialogue ended, else `OPEN`; leaving in the last turn counts as `LEFT`."""
        if dialogue and any(act.kind is Kind.LEAVE for _, act in dialogue[-1]):
            return Ending.LEFT
        if self._num_idle_acts(dialogue) > self.stale_turns:
            return Ending.STALE
        return Ending.TURN_LIMIT if len(dialogue) >= self.max_turns else Ending.OPEN

    def _num_idle_acts(self, dialogue: Dialogue) -> int:
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
