"""OTB: tokens have the baseline that makes the variance of their gradient least."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import distance, encode, group_size
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, Shared, rewards_to_go, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.errors import TableError
from harness.types.hyperparameters import one_of


@estimator("otb", needs=("energy",), preset={"gamma": 1.0})
@with_shared(*PENALTY, "singleton", gamma=1.0)
def otb(turns: TurnTable, shared: Shared, *, zero_tail: bool = True) -> Floats:
    """Return from each token on less the group's mean at its index, by energy. Shape [N].

    A_t = G_t - B_t, with B_t = (sum of G_t W_t) / (sum of W_t) over the group's rollouts that have
    a row of this index, 0 without energy. W_t, the realised energy, is the sum up to t of the column `energy`,
    1 - 2 pi + sum of squares of the distribution that the token was drawn from: the squared length
    of the gradient of log pi by the logits. Rows are tokens (see `harness.credit.tokens`), as in
    the reference, or turns, whose energy is the sum over theirs.
    Reference: Optimal Token Baseline, arXiv:2602.07078, as verl has it
    (`compute_multi_turn_optimal_token_baseline_advantage` of verl/trainer/ppo/core_algos.py,
    docs/algo/otb.md), without rollout importance weights.
    Departs from it: a group of one gets 0; `singleton="raw"` gives verl's return as it is. verl
    adds 1e-8 to the sum of W_t.

    Args:
        turns: The table, with the column `energy`, at least 0.
        shared: The discount, which verl has not. The penalty is subtracted from the advantage of
            the `row`, or from the turn's reward (`return`); `step` is nothing here.
        zero_tail: Give rows beyond the group's second longest rollout the baseline 0, as verl does.
            Else it is nearly their own return, so that they are not learned from.
    """
    one_of("zero_tail", zero_tail, (True, False))
    assert turns.energy is not None
    if (turns.energy < 0).any():
        row = int(np.flatnonzero(turns.energy < 0)[0])
        raise TableError(f"energy is {turns.energy[row]} in row {row}, expected at least 0")
    if not len(turns):
        return np.zeros(0)
    reward, _ = shared.penalised(turns)
    to_go = rewards_to_go(reward, turns.rollout, shared.gamma)  # G
    # W: the sum of one rollout alone, so that others' energies leave no rounding errors in it.
    spent = rewards_to_go(turns.energy[::-1], turns.rollout[::-1])[::-1]
    label = encode(turns.group, turns.turn)
    below = _weighted_mean(to_go, label, spent)[label]
    if zero_tail:
        below = np.where(group_size(label) > 1, below, 0.0)
    advantage = distance(to_go, below)
    members = group_size(encode(turns.group[turns.starts]))[turns.rollout]
    lone = to_go if shared.singleton == "raw" else np.zeros(len(turns))
    return np.where(members > 1, advantage, lone) - shared.row_penalty(turns)


def _weighted_mean(x: Floats, label: Ints, weight: Floats) -> Floats:
    """Return the weighted mean of each label's values, exactly theirs if they are equal. [L]."""
    one = np.zeros(int(label.max()) + 1)
    one[label] = x  # any value of each label
    total = np.bincount(label, weights=weight)
    moved = np.bincount(label, weights=(x - one[label]) * weight)
    spread = np.divide(moved, total, out=np.zeros_like(moved), where=total > 0)
    return np.where(total > 0, one + spread, 0.0)
