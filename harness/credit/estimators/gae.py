"""GAE: PPO's advantages over a critic's values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.credit.groups import distance
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, PenaltyOn, Shared, penalised, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number, one_of


@estimator("gae", needs=("value",), preset={"gamma": 1.0, "eps": 1e-8})
@with_shared("ddof", *PENALTY, gamma=1.0, eps=1e-8)
def gae(turns: TurnTable, shared: Shared, *, lam: float = 1.0, whiten: bool = False) -> Floats:
    """Generalised advantage of each row over the critic's value of its state. Shape [N].

    A_t = delta_t + gamma * lambda * A_{t+1} with delta_t = r_t + gamma * V_{t+1} - V_t, and both V
    and A are 0 after the rollout's last row. Rows are turns, or tokens if the table has tokens for
    rows. PPO's code whitens the advantages over the batch: `whiten=True`.
    Reference: Schulman et al. 2016, arXiv:1506.02438 (the truncated, exponentially weighted sum);
    used by PPO, arXiv:1707.06347.
    Departs from it: a rollout that was cut off counts as finished; its last state has no value.

    Args:
        turns: The table, with the column `value`.
        shared: The discount, and the settings of the whitening. The penalty is subtracted from the
            advantage of the `row` before whitening, or from the turn's reward, and so from the
            `return` that the critic learns; `step` is nothing here.
        lam: lambda, in [0, 1]: 1 for the return less the value, 0 for one step of bootstrapping.
        whiten: Divide by the standard deviation of all rows after subtracting their mean.
    """
    one_of("whiten", whiten, (True, False))
    advantage = penalised_advantages(turns, shared, lam)
    return shared.whiten(advantage, np.ones(len(turns), np.bool_)) if whiten else advantage


def penalised_advantages(turns: TurnTable, shared: Shared, lam: float) -> Floats:
    """Return `temporal_advantages`, less the penalties of invalid turns. Shape [N]."""
    reward, _ = shared.penalised(turns)
    advantage = temporal_advantages(replace(turns, reward=reward), shared.gamma, lam)
    return advantage - shared.row_penalty(turns)


def gae_returns(
    turns: TurnTable,
    *,
    gamma: float = 1.0,
    lam: float = 1.0,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Return the critic's target: the advantage before whitening plus the value. Shape [N].

    With lambda 1 it is the discounted sum of the rewards to go, less the penalties that are on the
    return.
    """
    turns.require(("value",), "gae_returns")
    assert turns.value is not None
    reward, _ = penalised(turns, invalid_penalty, penalty_on)
    return temporal_advantages(replace(turns, reward=reward), gamma, lam) + turns.value


def temporal_advantages(turns: TurnTable, gamma: float, lam: float) -> Floats:
    """Return the generalised advantages of a table that has values, before whitening. Shape [N]."""
    number("gamma", gamma, 0, 1)
    number("lam", lam, 0, 1)
    assert turns.value is not None
    goes_on = turns.goes_on
    next_value = np.where(goes_on, np.roll(turns.value, -1), 0.0)
    delta = distance(turns.reward + gamma * next_value, turns.value).tolist()
    for t in np.flatnonzero(goes_on)[::-1].tolist():
        delta[t] += gamma * lam * delta[t + 1]
    return np.asarray(delta, dtype=np.float64)
