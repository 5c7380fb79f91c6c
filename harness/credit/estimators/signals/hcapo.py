"""HCAPO: turns weighted by their probability in hindsight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.credit.estimators.grpo import Statistics, episode_part
from harness.credit.groups import Norm, encode, group_mean, standardise
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn, episode_returns, penalised
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.errors import TableError
from harness.types.hyperparameters import number, one_of


@estimator("hcapo", needs=("hindsight",))
def hcapo(
    turns: TurnTable,
    *,
    norm: Norm = "std",
    statistics: Statistics = "rollout",
    ddof: int = 1,
    eps: float = 1e-6,
    gamma: float = 0.95,
    step_weight: float = 1.0,
    clip_low: float = 0.8,
    clip_high: float = 1.2,
    smoothing: float = 0.0,
    mask_negative: bool = True,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Episode advantage plus the advantage of the turn's value in hindsight.

    A = A_E + omega * A_H. A_E is `grpo`. A_H = (Q_t - mean) / (std + eps) over all turns of the
    group, with Q_t = rho_t * gamma^(T - t) * R and rho_t = clip(pi_t / mean(pi), 0.8, 1.2), where
    pi_t is the column `hindsight` and its mean is over the turns of the rollout. The last turn of a
    rollout has t = T. In a successful rollout a negative A_H counts as 0.
    Reference: Tan et al. 2026, Hindsight Credit Assignment for Long-Horizon LLM Agents,
    arXiv:2603.08754.
    Departs from it: the paper leaves open whether mean and std are taken over the turns with the
    same t or over the whole group; here it is the group. Smoothing over time is a parameter.

    Args:
        turns: N turns of R rollouts, with the column `hindsight`, probabilities in [0, 1].
        norm: Divide both parts by their standard deviations (`std`) or only centre them (`mean`).
        statistics: Of the episode part; see `grpo`.
        ddof: 1 for sample standard deviations, 0 for the population's.
        eps: Added to the standard deviations; at least 0.
        gamma: Discount of the return to earlier turns, in [0, 1].
        step_weight: omega.
        clip_low: Least hindsight ratio, in [0, 1].
        clip_high: Greatest hindsight ratio, at least 1.
        smoothing: Share c in [0, 1] of the next turn: Q_t becomes (1 - c) Q_t + c Q_{t+1}; the last
            turn keeps its Q.
        mask_negative: Count negative A_H as 0 in successful rollouts.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: `step`, `row` or `return`; see `grpo`. Q reads the return, and no row's penalty.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
        TableError: The column `hindsight` is missing or holds something outside [0, 1].
    """
    number("step_weight", step_weight)
    one_of("mask_negative", mask_negative, (True, False))
    episode = episode_part(turns, norm, statistics, ddof, eps, invalid_penalty, penalty_on)
    reward, _ = penalised(turns, invalid_penalty, penalty_on)
    q = _hindsight_values(replace(turns, reward=reward), gamma, clip_low, clip_high)
    q = _smoothed(q, turns, smoothing)
    micro = standardise(q, encode(turns.group), norm=norm, ddof=ddof, eps=eps)
    if mask_negative:
        micro = np.where(turns.success, np.maximum(micro, 0.0), micro)
    return episode + step_weight * micro


def _hindsight_values(turns: TurnTable, gamma: float, low: float, high: float) -> Floats:
    """Q_t of each turn. Shape [N]."""
    number("gamma", gamma, 0, 1)
    number("clip_low", low, 0, 1)
    number("clip_high", high, 1)
    pi = turns.hindsight
    assert pi is not None
    if ((pi < 0) | (pi > 1)).any():
        row = int(np.flatnonzero((pi < 0) | (pi > 1))[0])
        raise TableError(f"hindsight is {pi[row]} in row {row}, expected a probability in [0, 1]")
    mean = group_mean(pi, turns.rollout)
    ratio = np.divide(pi, mean, out=np.ones_like(pi), where=mean > 0).clip(low, high)
    remaining = np.bincount(turns.rollout)[turns.rollout] - 1 - turns.turn
    discounted: Floats = float(gamma) ** remaining * episode_returns(turns)[turns.rollout]
    return ratio * discounted


def _smoothed(q: Floats, turns: TurnTable, smoothing: float) -> Floats:
    number("smoothing", smoothing, 0, 1)
    return np.where(turns.goes_on, (1 - smoothing) * q + smoothing * np.roll(q, -1), q)
