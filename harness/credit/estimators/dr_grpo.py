"""Dr. GRPO: the return less the group's mean."""

from __future__ import annotations

from harness.credit.estimators.grpo import Statistics, grpo
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("dr_grpo")
def dr_grpo(
    turns: TurnTable,
    *,
    statistics: Statistics = "rollout",
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Return of a rollout less the mean of its group, shared by all its turns.

    A_i = R_i - mean(R) over the rollouts of one group: `grpo` without the division, which favours
    groups of nearly equal returns. A group of one gets 0.
    Reference: Liu et al. 2025, Understanding R1-Zero-like Training, arXiv:2503.20783.
    Departs from it: the paper's other change, a constant in place of the response's length, is a
    choice of the loss; see harness/losses/aggregate.py.

    Args:
        turns: N turns of R rollouts.
        statistics: `rollout` or `turn`; see `grpo`.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: `step`, `row` or `return`; see `grpo`.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
    """
    return grpo(
        turns,
        scale_by_std=False,
        statistics=statistics,
        invalid_penalty=invalid_penalty,
        penalty_on=penalty_on,
    )
