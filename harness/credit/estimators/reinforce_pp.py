"""REINFORCE++: returns whitened over the whole batch."""

from __future__ import annotations

import numpy as np

from harness.credit.estimators.grpo import Statistics
from harness.credit.groups import encode, group_mean, group_size, whiten
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn, outcomes, penalised, rewards_to_go
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number, one_of


@estimator("reinforce_pp", preset={"gamma": 1.0, "eps": 1e-8})
def reinforce_pp(
    turns: TurnTable,
    *,
    baseline: bool = False,
    kl_coefficient: float = 0.0,
    gamma: float = 1.0,
    statistics: Statistics = "rollout",
    ddof: int = 1,
    eps: float = 1e-8,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Return from the turn on, whitened over all turns of the batch.

    A_t = (G_t - mean(G)) / (std(G) + eps) over all rows, whatever their group, with
    G_t = r_t - beta * kl_t + gamma * G_{t+1}. With `baseline=True` the outcome is one number for
    all turns: G = S_i - mean(S) over the rollouts of the group, with S_i the sum of the rollout's
    r_t - beta * kl_t; then whitened. There a group of one gets 0 and has no part in the whitening.
    Reference: Hu et al. 2025, REINFORCE++, arXiv:2501.03262, both variants.
    Departs from it: rows are turns unless the table has tokens for rows; so the divergence is that
    of a turn, summed over its tokens, and every turn weighs the same in the whitening.

    Args:
        turns: N turns of R rollouts; with the column `kl` if `kl_coefficient` is above 0.
        baseline: Subtract the group's mean before whitening.
        kl_coefficient: beta, at least 0: nats of divergence in units of reward.
        gamma: Discount of the returns, in [0, 1]; without `baseline`.
        statistics: `rollout`, or `turn`, which counts rows in the group's mean; see `grpo`.
        ddof: 1 for sample standard deviations, 0 for the population's.
        eps: Added to the standard deviation; at least 0.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: `step`, `row` or `return`; see `grpo`. On the `row` it is subtracted from the
            turn's G, and not discounted back.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
        TableError: `kl_coefficient` is above 0 and the table has no column `kl`.
    """
    one_of("baseline", baseline, (True, False))
    cost = _divergence_cost(turns, kl_coefficient)  # [N]
    reward, local = penalised(turns, invalid_penalty, penalty_on)
    outcome = outcomes(turns, statistics, invalid_penalty, penalty_on)
    if not baseline:
        to_go = rewards_to_go(reward - cost, turns.rollout, gamma)
        if statistics == "turn" or penalty_on == "row":
            to_go = to_go - local
        return whiten(to_go, np.ones(len(turns), np.bool_), ddof=ddof, eps=eps)
    costs = np.bincount(turns.rollout, weights=cost)  # [R]
    score = outcome.score - (costs[turns.rollout] if len(outcome.score) == len(turns) else costs)
    centred = (score - group_mean(score, outcome.group, outcome.weight))[outcome.owner]
    rollouts = group_size(encode(turns.group[turns.starts]))[turns.rollout]
    return whiten(centred, rollouts > 1, ddof=ddof, eps=eps)


def _divergence_cost(turns: TurnTable, kl_coefficient: float) -> Floats:
    number("kl_coefficient", kl_coefficient, 0)
    if not kl_coefficient:
        return np.zeros(len(turns))
    turns.require(("kl",), "estimator 'reinforce_pp' with kl_coefficient above 0")
    assert turns.kl is not None
    return kl_coefficient * turns.kl
