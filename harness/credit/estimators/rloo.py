"""RLOO: the return less the mean of the others'."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import distance, group_mean, group_size, group_weight, standardise
from harness.credit.registry import estimator
from harness.credit.shared import OUTCOMES, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints


@estimator("rloo")
@with_shared(*OUTCOMES)
def rloo(turns: TurnTable, shared: Shared) -> Floats:
    """Return of a rollout less the mean of the other rollouts of its group. Shape [N].

    A_i = R_i - mean over j != i of R_j = (R_i - mean(R)) * n / (n - 1) over the n rollouts of one
    group; over its n rows with `statistics="turn"`. A group of one gets 0.
    Reference: Ahmadian et al. 2024, Back to Basics, arXiv:2402.14740 (REINFORCE leave-one-out).
    Departs from it: the divergence from the reference policy is no part of the return; it is a
    choice of the loss.
    """
    score, group, owner, weight = shared.outcomes(turns)
    if shared.statistics == "turn" or len(score) != len(turns):
        return leave_one_out(score, group)[owner]
    # Each row has a score, and no row of the rollout itself is part of its baseline.
    rollout_score = group_mean(score, turns.rollout, weight)  # [N]
    first = turns.starts
    others = leave_one_out(rollout_score[first], group[first])[turns.rollout]
    compared = group_weight(weight, group) > 1
    return np.where(compared, distance(score, rollout_score) + others, 0.0)


def leave_one_out(x: Floats, label: Ints) -> Floats:
    """Distance of each value from the mean of the others of its group. Shapes [K], [K] -> [K]."""
    size = group_size(label)
    centred = standardise(x, label, norm="mean", ddof=1, eps=0.0)
    return centred * size / np.maximum(size - 1, 1)
