"""Returns of rollouts, as pure functions on the turn table's columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.credit.arguments import number, one_of
from harness.credit.groups import encode
from harness.credit.table import Bools, Floats, Ints, TurnTable


def rewards_to_go(reward: Floats, rollout: Ints, gamma: float = 1.0) -> Floats:
    """Discounted sum of the rewards from each turn to its rollout's end. Shape [N].

    G_t = r_t + gamma * G_{t+1}, with G = 0 after the last turn.

    Raises:
        ConfigError: `gamma` is not in [0, 1].
    """
    number("gamma", gamma, 0, 1)
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
    Reference: GiGPO, arXiv:2505.10978, with the invalid-action penalty of its released code; the
    bonus is Eq. 4 of SCPO, which calls such terms local by GiGPO's convention (section 3.5).
    """
    to_go = rewards_to_go(turns.reward, turns.rollout, gamma)
    bonus = 0.0 if turns.return_bonus is None else turns.return_bonus
    return to_go - penalties(turns.valid, invalid_penalty) + bonus


def penalties(valid: Bools, invalid_penalty: float) -> Floats:
    """The penalty at invalid turns, 0 elsewhere. Shape [N].

    Raises:
        ConfigError: `invalid_penalty` is negative.
    """
    number("invalid_penalty", invalid_penalty, 0)
    return np.where(valid, 0.0, invalid_penalty)


class Outcomes(NamedTuple):
    """What rollouts are compared by: K scores, one of each rollout or one of each turn.

    Attributes:
        score: [K].
        group: Label of the score's group. [K].
        owner: The score of each turn. [N] into K.
    """

    score: Floats
    group: Ints
    owner: Ints


def outcomes(turns: TurnTable, statistics: str, invalid_penalty: float) -> Outcomes:
    """Return the scores that episode advantages are computed from.

    Args:
        turns: N turns of R rollouts.
        statistics: `rollout` counts each rollout's return once. `turn` gives every row a score, its
            rollout's return less the penalty if the row is invalid: so long rollouts weigh more.
        invalid_penalty: At least 0; only with `statistics="turn"`.

    Raises:
        ConfigError: `statistics` is neither, or the penalty is negative.
    """
    one_of("statistics", statistics, ("rollout", "turn"))
    returns = episode_returns(turns)  # [R]
    penalty = penalties(turns.valid, invalid_penalty)  # [N]
    if statistics == "rollout":
        return Outcomes(returns, encode(turns.group[turns.starts]), turns.rollout)
    rows = np.arange(len(turns), dtype=np.int64)
    return Outcomes(returns[turns.rollout] - penalty, encode(turns.group), rows)
