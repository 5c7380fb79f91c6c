"""GRPO: advantages relative to the group."""

from __future__ import annotations

from typing import Literal

import numpy as np

from harness.credit.groups import Norm, group_weight, standardise
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn, outcomes
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import one_of

Statistics = Literal["rollout", "turn"]
Singleton = Literal["zero", "raw"]


@estimator("grpo")
def grpo(
    turns: TurnTable,
    *,
    scale_by_std: bool = True,
    statistics: Statistics = "rollout",
    ddof: int = 1,
    eps: float = 1e-6,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
    singleton: Singleton = "zero",
) -> Floats:
    """Group-relative advantage of a rollout, shared by all its turns.

    A_i = (R_i - mean(R)) / (std(R) + eps) over the rollouts of one group, with R the undiscounted
    return; `scale_by_std=False` leaves the division out. A group of one gets 0.
    Reference: Shao et al. 2024, arXiv:2402.03300, section 4.1.2 (outcome supervision).
    Departs from it: the mean over tokens is the loss's business; see harness/losses/aggregate.py.

    Args:
        turns: N turns of R rollouts.
        scale_by_std: Divide by the standard deviation, not only centre.
        statistics: `rollout` counts each rollout once, as the papers write. `turn` counts each row,
            so that long rollouts weigh more, with the penalty inside the row's own score, as
            verl-agent's released code does.
        ddof: 1 for the sample standard deviation, 0 for the population's.
        eps: Added to the standard deviation; at least 0.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: What it is subtracted from: the `row`'s own score, which statistics of rows have
            anyway (`step`), or the rollout's `return`. See `harness.credit.returns.outcomes`.
        singleton: Advantage of a group of one score: `zero`, or `raw`, the score over 1 + eps (or
            as it is, without the division), as in verl-agent's released code, where so a lone
            success is learned from as if it were better than others. No preset sets it.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
    """
    one_of("scale_by_std", scale_by_std, (True, False))
    one_of("singleton", singleton, ("zero", "raw"))
    norm: Norm = "std" if scale_by_std else "mean"
    score, group, owner, weight = outcomes(turns, statistics, invalid_penalty, penalty_on)
    advantage = standardise(score, group, norm=norm, ddof=ddof, eps=eps, weight=weight)
    if singleton == "raw":
        raw = score / (1.0 + eps) if scale_by_std else score
        advantage = np.where(group_weight(weight, group) == 1, raw, advantage)
    return advantage[owner]


def episode_part(
    turns: TurnTable,
    norm: Norm,
    statistics: Statistics,
    ddof: int,
    eps: float,
    invalid_penalty: float,
    penalty_on: PenaltyOn,
    singleton: Singleton = "zero",
) -> Floats:
    """Return A_E, which estimators add a step part to: `grpo`, scaled as `norm` says. Shape [N]."""
    return grpo(
        turns,
        scale_by_std=norm == "std",
        statistics=statistics,
        ddof=ddof,
        eps=eps,
        invalid_penalty=invalid_penalty,
        penalty_on=penalty_on,
        singleton=singleton,
    )
