"""Dr. GRPO: the return less the group's mean."""

from __future__ import annotations

from dataclasses import replace

from harness.credit.registry import estimator
from harness.credit.shared import OUTCOMES, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("dr_grpo")
@with_shared(*OUTCOMES)
def dr_grpo(turns: TurnTable, shared: Shared) -> Floats:
    """Return of a rollout less the mean of its group, shared by all its turns. Shape [N].

    A_i = R_i - mean(R) over the rollouts of one group: `grpo` without the division, which favours
    groups of nearly equal returns. A group of one gets 0.
    Reference: Liu et al. 2025, Understanding R1-Zero-like Training, arXiv:2503.20783.
    Departs from it: the paper's other change, a constant in place of the response's length, is a
    choice of the loss; see harness/losses/aggregate.py.
    """
    return replace(shared, norm="mean").episode(turns)
