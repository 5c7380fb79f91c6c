"""REINFORCE++: returns whitened over the whole batch."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import encode, group_mean, group_size
from harness.credit.registry import estimator
from harness.credit.shared import OUTCOMES, Shared, rewards_to_go, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number, one_of


@estimator("reinforce_pp", preset={"gamma": 1.0, "eps": 1e-8})
@with_shared("ddof", *OUTCOMES, gamma=1.0, eps=1e-8)
def reinforce_pp(
    turns: TurnTable, shared: Shared, *, baseline: bool = False, kl_coefficient: float = 0.0
) -> Floats:
    """Return from the turn on, whitened over all turns of the batch. Shape [N].

    A_t = (G_t - mean(G)) / (std(G) + eps) over all rows, whatever their group, with
    G_t = r_t - beta * kl_t + gamma * G_{t+1}. With `baseline=True` the outcome is one number for
    all turns: G = S_i - mean(S) over the rollouts of the group, with S_i the sum of the rollout's
    r_t - beta * kl_t; then whitened. There a group of one gets 0 and has no part in the whitening.
    Reference: Hu et al. 2025, REINFORCE++, arXiv:2501.03262, both variants.
    Departs from it: rows are turns unless the table has tokens for rows; so the divergence is that
    of a turn, summed over its tokens, and every turn weighs the same in the whitening.

    Args:
        turns: The turn table; with the column `kl` if `kl_coefficient` is above 0.
        shared: The settings of G and of the whitening. `gamma` matters without `baseline`. On the
            `row` the penalty is subtracted from the turn's G, and not discounted back.
        baseline: Subtract the group's mean before whitening.
        kl_coefficient: beta, at least 0: nats of divergence in units of reward.

    Raises:
        TableError: `kl_coefficient` is above 0 and the table has no column `kl`.
    """
    one_of("baseline", baseline, (True, False))
    cost = _divergence_cost(turns, kl_coefficient)  # [N]
    if not baseline:
        reward, local = shared.penalised(turns)  # [N] each
        to_go = rewards_to_go(reward - cost, turns.rollout, shared.gamma)
        if shared.statistics == "turn" or shared.penalty_on == "row":
            to_go = to_go - local
        return shared.whiten(to_go, np.ones(len(turns), np.bool_))
    outcome = shared.outcomes(turns)
    costs = np.bincount(turns.rollout, weights=cost)  # [R]
    score = outcome.score - (costs[turns.rollout] if len(outcome.score) == len(turns) else costs)
    centred = (score - group_mean(score, outcome.group, outcome.weight))[outcome.owner]
    rollouts = group_size(encode(turns.group[turns.starts]))[turns.rollout]
    return shared.whiten(centred, rollouts > 1)


def _divergence_cost(turns: TurnTable, kl_coefficient: float) -> Floats:
    number("kl_coefficient", kl_coefficient, 0)
    if not kl_coefficient:
        return np.zeros(len(turns))
    turns.require(("kl",), "estimator 'reinforce_pp' with kl_coefficient above 0")
    assert turns.kl is not None
    return kl_coefficient * turns.kl
