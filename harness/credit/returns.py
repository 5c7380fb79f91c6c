"""Returns of rollouts, as pure functions on the turn table's columns."""

from __future__ import annotations

import numpy as np

from harness.credit.table import Bools, Floats, Ints, TurnTable


def rewards_to_go(reward: Floats, rollout: Ints, gamma: float = 1.0) -> Floats:
    """Discounted sum of the rewards from each turn to its rollout's end. Shape [N].

    G_t = r_t + gamma * G_{t+1}, with G = 0 after the last turn.
    """
    to_go = reward.tolist()
    owner = rollout.tolist()
    for t in range(len(to_go) - 2, -1, -1):
        if owner[t] == owner[t + 1]:
            to_go[t] += gamma * to_go[t + 1]
    return np.asarray(to_go, dtype=np.float64)


def episode_returns(turns: TurnTable) -> Floats:
    """Undiscounted return of each rollout. Shape [R]."""
    return np.bincount(turns.rollout, weights=turns.reward).astype(np.float64)


def step_returns(turns: TurnTable, gamma: float, invalid_penalty: float) -> Floats:
    """Discounted return of each turn, less the penalty where the turn's own action is invalid.

    R_t = r_t + gamma * R_{t+1}; then R_t -= c at invalid turns only: the penalty is local and never
    discounted back to earlier turns. So is `turns.return_bonus`, which is added. Shape [N].
    Reference: GiGPO, arXiv:2505.10978, Eq. 7, with the invalid-action penalty of its released code;
    the bonus is Eq. 4 of SCPO.
    """
    to_go = rewards_to_go(turns.reward, turns.rollout, gamma)
    bonus = 0.0 if turns.return_bonus is None else turns.return_bonus
    return to_go - penalties(turns.valid, invalid_penalty) + bonus


def penalties(valid: Bools, invalid_penalty: float) -> Floats:
    """The penalty at invalid turns, 0 elsewhere. Shape [N]."""
    return np.where(valid, 0.0, invalid_penalty)
