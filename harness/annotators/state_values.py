"""The annotator of measured state values, by continuations that are played with the rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from harness.annotators.measures import Measure
from harness.credit import TurnTable
from harness.types.errors import TrainingError
from harness.types.hyperparameters import integer
from harness.types.rollout import Rollout

NAME: Final = "continuations"
"""Name of the annotator; a run that has it plays continuations."""


@dataclass(frozen=True, slots=True)
class StateValuesSettings:
    """Settings of `StateValues`."""

    count: int = 8  # K, continuations of each state; at least 1

    def __post_init__(self) -> None:
        integer("continuations.count", self.count, 1)


class StateValues(Measure):
    """Fills `state_value`: the mean return of continuations, played from forks before each turn."""

    columns: ClassVar[tuple[str, ...]] = ("state_value",)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its values, in units of its rewards."""
        measured = [rollout.state_returns for rollout in rollouts]
        known = [returns for returns in measured if returns is not None]
        if len(known) < len(measured):
            raise TrainingError("a rollout has no measured states: it was played without forks")
        values = [returns.mean(axis=1) for returns in known]
        return replace(turns, state_value=np.concatenate([np.zeros(0), *values]))


def wanted(annotators: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how many continuations of each state resolved annotators want; 0 for none."""
    return int(annotators[NAME]["count"]) if NAME in annotators else 0
