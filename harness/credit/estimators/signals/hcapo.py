"""HCAPO: turns weighted by their probability in hindsight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.credit.groups import encode, group_mean
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, episode_returns, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.errors import TableError
from harness.types.hyperparameters import number, one_of


@estimator("hcapo", needs=("hindsight",))
@with_shared(*EPISODE, "gamma")
def hcapo(
    turns: TurnTable,
    shared: Shared,
    *,
    step_weight: float = 1.0,
    clip_low: float = 0.8,
    clip_high: float = 1.2,
    smoothing: float = 0.0,
    mask_negative: bool = True,
) -> Floats:
    """Episode advantage plus the advantage of the turn's value in hindsight. Shape [N].

    A = A_E + omega * A_H. A_E is `grpo`. A_H = (Q_t - mean) / (std + eps) over all turns of the
    group, with Q_t = rho_t * gamma^(T - t) * R and rho_t = clip(pi_t / mean(pi), 0.8, 1.2), where
    pi_t is the column `hindsight` and its mean is over the turns of the rollout. The last turn of a
    rollout has t = T. In a successful rollout a negative A_H counts as 0.
    Reference: Tan et al. 2026, Hindsight Credit Assignment for Long-Horizon LLM Agents,
    arXiv:2603.08754.
    Departs from it: the paper leaves open whether mean and std are taken over the turns with the
    same t or over the whole group; here it is the group. Smoothing over time is a parameter.

    Args:
        turns: The turn table, with the column `hindsight`.
        shared: The settings of both parts. Q loses penalties on the `return`, and no row's.
        step_weight: omega.
        clip_low: The least hindsight ratio, in [0, 1].
        clip_high: The greatest hindsight ratio, at least 1.
        smoothing: The share c in [0, 1] of the next turn: Q_t becomes (1 - c) Q_t + c Q_{t+1}; the
            last turn keeps its Q.
        mask_negative: Count negative A_H as 0 in successful rollouts.

    Raises:
        TableError: The column `hindsight` is missing or holds something outside [0, 1].
    """
    number("step_weight", step_weight)
    one_of("mask_negative", mask_negative, (True, False))
    reward, _ = shared.penalised(turns)
    q = _hindsight_values(replace(turns, reward=reward), shared.gamma, clip_low, clip_high)
    step = shared.standardise(_smoothed(q, turns, smoothing), encode(turns.group))  # A_H, [N]
    if mask_negative:
        step = np.where(turns.success, np.maximum(step, 0.0), step)
    return shared.episode(turns) + step_weight * step


def _hindsight_values(turns: TurnTable, gamma: float, low: float, high: float) -> Floats:
    """Q_t of each turn. Shape [N]."""
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
