"""Annotators: each fills columns of the turn table that some estimator reads.

Some only measure (entropy), some hold a model that learns with the policy (critic, reward model).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from harness.annotators.registry import columns, complete, make, names, needs_reference
from harness.annotators.surroundings import Surroundings
from harness.credit import TurnTable
from harness.rollout import Rollout

__all__ = [
    "Annotator",
    "Surroundings",
    "columns",
    "complete",
    "make",
    "names",
    "needs_reference",
]


class Annotator(Protocol):
    """Fills columns, and may learn from the rollouts it filled them for.

    Attributes:
        columns: Those it fills.
    """

    columns: tuple[str, ...]

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its columns filled; `rollouts` are those it was built from."""
        ...

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Learn from an annotated step, if it learns, and return figures to log."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return all that changes in training, tensors and plain values, for a checkpoint."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`."""
        ...
