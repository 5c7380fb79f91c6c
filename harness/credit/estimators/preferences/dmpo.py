"""DMPO: preferences between whole rollouts, as the weights of their turns."""

from __future__ import annotations

import numpy as np

from harness.credit.preferences import Pairs
from harness.credit.registry import estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("dmpo", needs=("kl",), preset={"gamma": 0.7})
def dmpo(turns: TurnTable, *, beta: float = 0.1, gamma: float = 0.7) -> Floats:
    """Negative weight of a turn's log-probability in the gradient of the DMPO loss. Shape [N].

    L = mean over pairs of -log sigmoid(s_w - s_l), over all pairs of a success w and a failure l of
    one group, with the score s = beta * sum_t phi(t, T) * log(pi / pi_ref)(a_t) of a rollout of T
    turns and phi(t, T) = gamma^t (1 - gamma^(T-t)) / (1 - gamma^T), t from 0; (T - t) / T at
    gamma 1. The weight of turn t is -dL/ds * beta * phi(t, T), so minus the weighted sum of
    log-probabilities has the gradient of L. The column `kl` holds the log-ratios. Weights are
    positive in winners, negative in losers, and 0 in groups without both.
    Reference: Shi et al. 2024, DMPO, arXiv:2406.14868; phi, beta and gamma as in its released code
    (the length normalisation of the state-action occupancy).
    Departs from it: pairs come from the policy's own rollouts of this step, not from an expert's
    and a weaker agent's.

    Args:
        turns: The turn table, with the column `kl`.
        beta: The factor of the score, at least 0.
        gamma: The discount, in (0, 1].
    """
    number("beta", beta, 0)
    number("gamma", gamma, 1e-6, 1)
    if not len(turns):
        return np.zeros(0)
    phi = occupancy_weights(turns, gamma)
    slope = pairs_of(turns).slope(scores(turns, beta=beta, gamma=gamma))
    return -slope[turns.rollout] * beta * phi


def scores(turns: TurnTable, *, beta: float = 0.1, gamma: float = 0.7) -> Floats:
    """Return the score s of every rollout; the table must have `kl`. Shape [R]."""
    turns.require(("kl",), "dmpo.scores")
    assert turns.kl is not None
    weighted = occupancy_weights(turns, gamma) * turns.kl
    return beta * np.bincount(turns.rollout, weights=weighted).astype(np.float64)


def pairs_of(turns: TurnTable) -> Pairs:
    """Return the pairs of a success and a failure of one group."""
    return Pairs.within(turns.group[turns.starts], turns.success[turns.starts])


def occupancy_weights(turns: TurnTable, gamma: float) -> Floats:
    """Return phi(t, T) of every turn. Shape [N]."""
    length = np.bincount(turns.rollout)[turns.rollout].astype(np.float64)
    left = length - turns.turn
    if gamma == 1:
        return left / length
    return gamma**turns.turn * (1 - gamma**left) / (1 - gamma**length)
