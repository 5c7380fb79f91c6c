"""MaxRL: the return relative to the group's mean, so that rare successes weigh more."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import group_mean, standardise
from harness.credit.registry import estimator
from harness.credit.shared import OUTCOMES, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats

_ZERO = 1e-9
"""A mean this small, relative to the returns' size, is 0."""


@estimator("maxrl")
@with_shared(*OUTCOMES)
def maxrl(turns: TurnTable, shared: Shared) -> Floats:
    """Return of a rollout less its group's mean, over that mean, shared by its turns. Shape [N].

    A_i = (R_i - mean(R)) / mean(R) over the rollouts of one group: with returns of 0 and 1 and a
    success rate p, 1/p - 1 for a success and -1 for a failure. Its gradient is that of the
    likelihood of success, truncated at the group's size. A group whose mean is 0 or less gets 0.
    Reference: Tajwar et al. 2026, Maximum Likelihood Reinforcement Learning, arXiv:2602.02710, as
    prime-rl's `max_rl` computes it.
    Departs from it: returns may be any numbers; it is meant for those that are not negative.
    """
    score, group, owner, weight = shared.outcomes(turns)
    centred = standardise(score, group, norm="mean", ddof=1, eps=0.0, weight=weight)
    mean = group_mean(score, group, weight)
    some = mean > _ZERO * group_mean(np.abs(score), group, weight)
    return np.divide(centred, mean, out=np.zeros_like(centred), where=some)[owner]
