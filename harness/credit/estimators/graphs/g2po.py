"""G2PO: turns are compared by the values of the states they lead to, in the group's graph."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import encode, group_mean
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("g2po")
@with_shared(*EPISODE, "gamma")
def g2po(
    turns: TurnTable, shared: Shared, *, state_weight: float = 1.0, step_weight: float = 1.0
) -> Floats:
    """Episode advantage plus those of the gain in value and of the value reached. Shape [N].

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
        turns: The turn table; reads `success` and `state_key`.
        shared: The settings of all parts. With `penalty_on="row"` V(s') in A_state loses the
            penalty, and the turn's score in A_E; `step` is nothing, but for statistics of rows.
        state_weight: kappa, the weight of A_state beside A_gain.
        step_weight: omega, the weight of both step parts.
    """
    number("state_weight", state_weight)
    number("step_weight", step_weight)
    reward, _ = shared.penalised(turns)
    returns = np.bincount(turns.rollout, weights=reward).astype(np.float64)[turns.rollout]  # [N]
    left = np.bincount(turns.rollout)[turns.rollout] - turns.turn  # T - t
    state = encode(turns.group, turns.state_key)
    discounted: Floats = float(shared.gamma) ** left * returns
    value = group_mean(discounted, state)  # V(s)
    value_at_end = np.where(turns.success, returns, 0.0)
    next_value = np.where(turns.goes_on, np.roll(value, -1), value_at_end)  # V(s')
    gain = shared.standardise(next_value - value, encode(turns.group))
    among = shared.standardise(next_value - shared.row_penalty(turns), state)
    return shared.episode(turns) + step_weight * (gain + state_weight * among)
