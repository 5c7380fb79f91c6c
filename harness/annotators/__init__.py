"""Annotators: each fills columns of the turn table for estimators.

Takes a step's rollouts and turn table; returns columns. Some only measure (entropy), some have a
model that learns with the policy (critic, reward model).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.annotators.context import AnnotatorContext
from harness.annotators.registry import (
    columns,
    complete,
    make,
    names,
    needs_oracle,
    needs_reference,
    register,
)
from harness.credit import TurnTable
from harness.types.rollout import Rollout
from harness.types.stateful import Stateful

__all__ = [
    "Annotator",
    "AnnotatorContext",
    "columns",
    "complete",
    "make",
    "names",
    "needs_oracle",
    "needs_reference",
    "register",
]


class Annotator(Stateful, Protocol):
    """Fills `columns` of a turn table, and may learn from its rollouts."""

    columns: tuple[str, ...]

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its columns filled; `rollouts` are those it was built from."""
        ...

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Learn from an annotated step, if it learns, and return figures to log."""
        ...
