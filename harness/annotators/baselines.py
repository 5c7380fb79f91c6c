"""Annotators that remember earlier steps: the usual return of each seat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from harness.annotators.context import AnnotatorContext
from harness.credit import TurnTable
from harness.credit.shared import episode_returns
from harness.types.errors import ConfigError
from harness.types.hyperparameters import number, one_of
from harness.types.rollout import Rollout


@dataclass(frozen=True, slots=True)
class SeatBaselineSettings:
    """Settings of `SeatBaseline`. SOTOPIA's task ids end with the seat."""

    decay: float = 0.95  # share of the old average that a rollout keeps, in [0, 1]
    # returns enter before (Eq. 2) or after the comparison (prime-rl)
    update: Literal["before", "after"] = "before"
    seat: str = r"/([01])$"  # regular expression, first group; tasks without share a seat

    def __post_init__(self) -> None:
        number("seat_baseline.decay", self.decay, 0, 1)
        one_of("seat_baseline.update", self.update, ("before", "after"))
        try:
            groups = re.compile(self.seat).groups
        except (re.error, TypeError):
            groups = 0
        if not groups:
            raise ConfigError(
                "seat_baseline.seat must be a regular expression with a group, the seat in a "
                f"task's id; got {self.seat!r:.80}"
            )


class SeatBaseline:
    """Fills `value`: a moving average of the returns at a rollout's seat, in the same family.

    b <- decay^n b + (1 - decay^n) mean R, for the n rollouts of a step at that seat: as if each had
    their mean return. b begins at 0. Checkpoints keep the averages.
    Reference: SPIRAL (Liu et al. 2025), arXiv:2506.24119, Eq. 2, with a game for each family.
    Departs from it: rollouts of a step enter together, so that their order does not matter.
    """

    columns: ClassVar[tuple[str, ...]] = ("value",)

    def __init__(self, settings: SeatBaselineSettings, context: AnnotatorContext) -> None:
        self._settings, self._context = settings, context
        self._averages: dict[str, float] = {}

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with the baselines of its rollouts' seats."""
        before = self._settings.update == "before"
        averages = self._updated(turns, rollouts) if before else self._averages
        baseline = np.array([averages.get(self._key(one), 0.0) for one in rollouts])
        return replace(turns, value=baseline[turns.rollout])

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Take the step's returns into the averages, and return these."""
        self._averages = self._updated(turns, rollouts)
        return {
            f"seat_baseline/{key.replace('/', '_')}": value for key, value in self._averages.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the averages."""
        return {"averages": dict(self._averages)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`."""
        self._averages = dict(state["averages"])

    def _updated(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> dict[str, float]:
        returns, averages = episode_returns(turns), dict(self._averages)
        keys = [self._key(rollout) for rollout in rollouts]
        for key in sorted(set(keys)):
            own = returns[[other == key for other in keys]]
            kept = self._settings.decay ** len(own)
            averages[key] = kept * averages.get(key, 0.0) + (1 - kept) * float(own.mean())
        return averages

    def _key(self, rollout: Rollout) -> str:
        found = re.search(self._settings.seat, rollout.task_id)
        return f"{rollout.family}/{found[1] if found else ''}"
