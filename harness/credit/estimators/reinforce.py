"""REINFORCE: the return, or the return less a baseline."""

from __future__ import annotations

from typing import Literal

import numpy as np

from harness.credit.groups import distance, group_mean
from harness.credit.registry import estimator
from harness.credit.shared import OUTCOMES, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("reinforce")
@with_shared(*OUTCOMES)
def reinforce(
    turns: TurnTable, shared: Shared, *, baseline: float | Literal["batch"] = 0.0
) -> Floats:
    """Return of a rollout less a baseline, shared by all its turns. Shape [N].

    A_i = R_i - b, with R the undiscounted return. Groups play no part: so a group of one has an
    advantage, and a batch in which nothing differs has one too, unless b is the batch's mean.
    Reference: Williams 1992, Simple statistical gradient-following algorithms for connectionist
    reinforcement learning, with one baseline for all states.
    Departs from it: a running mean over steps is state, which an estimator does not have. The
    caller passes its present value as `baseline`, or takes the mean of the batch.

    Args:
        turns: The turn table.
        shared: The settings of the scores; `statistics` matters to the batch's mean.
        baseline: b: a number, or `batch` for the mean score of the whole batch.
    """
    score, _, owner, weight = shared.outcomes(turns)
    if baseline == "batch":
        whole = np.zeros(len(score), dtype=np.int64)
        return distance(score, group_mean(score, whole, weight))[owner]
    number("baseline", baseline)
    return score[owner] - float(baseline)
