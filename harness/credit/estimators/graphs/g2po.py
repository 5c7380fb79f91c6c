"""G2PO: turns are compared by the values of the states they lead to, in the group's graph."""

from __future__ import annotations

import numpy as np

from harness.credit.estimators.grpo import Statistics, episode_part
from harness.credit.groups import Norm, encode, group_mean, standardise
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn, penalised
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("g2po")
def g2po(
    turns: TurnTable,
    *,
    gamma: float = 0.95,
    state_weight: float = 1.0,
    norm: Norm = "std",
    statistics: Statistics = "rollout",
    ddof: int = 1,
    eps: float = 1e-6,
    step_weight: float = 1.0,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Episode advantage plus advantages of a turn's gain in value, and of the value it leads to.

    A = A_E + omega (A_gain + kappa A_state). The value of a state is a mean over all visits of the
    group, V(s) = mean of gamma^(T - t) R for turn t, counted from 0, of a rollout of T turns and
    return R; behind the last turn it is R after a success and 0 after a failure. A turn from s to
    s' has A_gain = (x - mean) / (std + eps) of x = V(s') - V(s), without a discount, over all turns
    of the group, and A_state the same of V(s') over the group's turns from s, where an invalid turn
    pays its penalty. A_E is `grpo`.
    Reference: Wang et al. 2026, Group-Graph Policy Optimization (G2PO), arXiv:2606.22995; its
    released code, Nala-YN/G2PO, g2po/core_g2po.py.
    Departs from it: states are equal when the environment's keys are; a group of one turn gets 0,
    where the code divides by no deviation. The code writes 10 for the return of every success.

    The abstract names A_gain alone (one standardisation over the whole graph), the code has both
    terms: `state_weight=0` is the former. The code's script for WebShop has `norm="mean"`.

    Args:
        turns: N turns of R rollouts; reads `success` and `state_key`.
        gamma: Discount of the return to earlier visits, in [0, 1].
        state_weight: kappa, weight of A_state beside A_gain.
        norm: Divide all parts by their standard deviations (`std`) or only centre them (`mean`).
        statistics: Of the episode part; see `grpo`.
        ddof: 1 for sample standard deviations, 0 for the population's.
        eps: Added to the standard deviations; at least 0.
        step_weight: omega, weight of both step parts.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: What it is subtracted from: the whole `row`, which is V(s') in A_state and the
            turn's score in the episode part, or the rollout's `return`; `step` is nothing here,
            but for statistics of rows. See `grpo`.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
    """
    for name, value in (("state_weight", state_weight), ("step_weight", step_weight)):
        number(name, value)
    number("gamma", gamma, 0, 1)
    episode = episode_part(turns, norm, statistics, ddof, eps, invalid_penalty, penalty_on)
    reward, local = penalised(turns, invalid_penalty, penalty_on)
    returns = np.bincount(turns.rollout, weights=reward).astype(np.float64)[turns.rollout]  # [N]
    left = np.bincount(turns.rollout)[turns.rollout] - turns.turn  # T - t
    state = encode(turns.group, turns.state_key)
    discounted: Floats = float(gamma) ** left * returns
    here = group_mean(discounted, state)
    ends = np.where(turns.success, returns, 0.0)
    reached = np.where(turns.goes_on, np.roll(here, -1), ends)
    group = encode(turns.group)
    gain = standardise(reached - here, group, norm=norm, ddof=ddof, eps=eps)
    paid = reached - local if penalty_on == "row" else reached
    among = standardise(paid, state, norm=norm, ddof=ddof, eps=eps)
    return episode + step_weight * (gain + state_weight * among)
