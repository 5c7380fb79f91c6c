"""RLOO: the return less the mean of the others'."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import group_size, standardise
from harness.credit.grpo import Statistics
from harness.credit.registry import estimator
from harness.credit.returns import outcomes
from harness.credit.table import Floats, Ints, TurnTable


@estimator("rloo")
def rloo(
    turns: TurnTable, *, statistics: Statistics = "rollout", invalid_penalty: float = 0.1
) -> Floats:
    """Return of a rollout less the mean of the other rollouts of its group.

    A_i = R_i - mean over j != i of R_j = (R_i - mean(R)) * n / (n - 1) over the n rollouts of one
    group. A group of one gets 0.
    Reference: Ahmadian et al. 2024, Back to Basics, arXiv:2402.14740 (REINFORCE leave-one-out).
    Departs from it: the divergence from the reference policy is no part of the return; it is a
    choice of the loss.

    Args:
        turns: N turns of R rollouts.
        statistics: `rollout` or `turn`, which counts rows in n; see `grpo`.
        invalid_penalty: At least 0, and only with `statistics="turn"`; see `grpo`.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
    """
    score, group, owner = outcomes(turns, statistics, invalid_penalty)
    return leave_one_out(score, group)[owner]


def leave_one_out(x: Floats, label: Ints) -> Floats:
    """Distance of each value from the mean of the others of its group. Shapes [K], [K] -> [K]."""
    size = group_size(label)
    centred = standardise(x, label, norm="mean", ddof=1, eps=0.0)
    return centred * size / np.maximum(size - 1, 1)
