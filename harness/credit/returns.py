"""Returns of rollouts, as pure functions on the turn table's columns."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

import numpy as np

from harness.credit.groups import encode
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.hyperparameters import number, one_of

Statistics = Literal["rollout", "turn"]
"""The unit that has a score in the statistics of a group; see `outcomes`."""

PenaltyOn = Literal["step", "row", "return"]
"""The place where an invalid action loses its penalty; see `outcomes` and `step_returns`."""

STEP_RETURNS: Final = ("gamma", "invalid_penalty", "penalty_on")
"""The hyperparameters of `step_returns`, in order."""


def rewards_to_go(reward: Floats, rollout: Ints, gamma: float = 1.0) -> Floats:
    """Discounted sum of the rewards from each turn to its rollout's end. Shape [N].

    G_t = r_t + gamma * G_{t+1}, with G = 0 after the last turn; gamma in [0, 1].
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


def overlong_penalties(lengths: Ints, limit: int, share: float) -> Floats:
    """Return the cost of too long responses, in [0, 1]. Shapes [N] -> [N].

    0 up to (1 - share) * limit tokens, from there rising in a line to 1 at the limit; none with
    share 0.
    Reference: DAPO, arXiv:2503.14476, Eq. 13 (soft overlong punishment), there a negative reward;
    limit 20,480 and share 0.2, the last 4,096 tokens.
    """
    if not share:
        return np.zeros(len(lengths))
    return np.clip(1 - (limit - lengths) / (share * limit), 0.0, 1.0)


def step_returns(
    turns: TurnTable, gamma: float, invalid_penalty: float, penalty_on: PenaltyOn = "step"
) -> Floats:
    """Discounted return of each turn, less the penalty where the turn's own action is invalid.

    R_t = r_t + gamma * R_{t+1}; then R_t -= c at invalid turns only: the penalty is local and never
    discounted back to earlier turns, unless it is on the `return`. So is `turns.return_bonus`,
    which is added. Shape [N].
    Reference: GiGPO, arXiv:2505.10978, with the invalid-action penalty of its released code; the
    bonus is Eq. 4 of SCPO, which calls such terms local by GiGPO's convention (section 3.5).
    """
    reward, local = penalised(turns, invalid_penalty, penalty_on)
    bonus = 0.0 if turns.return_bonus is None else turns.return_bonus
    return rewards_to_go(reward, turns.rollout, gamma) - local + bonus


def penalised(
    turns: TurnTable, invalid_penalty: float, penalty_on: PenaltyOn
) -> tuple[Floats, Floats]:
    """Return the rewards less the penalties on the return, and the penalties that are local.

    On a table of tokens the former are at the last tokens of the turns, the latter at all. Shapes
    [N] each.
    """
    number("invalid_penalty", invalid_penalty, 0)
    one_of("penalty_on", penalty_on, get_args(PenaltyOn))
    penalty = np.where(turns.valid, 0.0, invalid_penalty)  # [N]
    if penalty_on != "return":
        return turns.reward, penalty
    return turns.reward - penalty * turns.ends_turn, np.zeros(len(turns))


class Outcomes(NamedTuple):
    """The scores that are compared in a group: K scores, one for each rollout or each turn."""

    score: Floats  # [K]
    group: Ints  # [K], the label of the score's group
    owner: Ints  # [N] into K, the score of each turn
    weight: Floats  # [K], the score's weight in its group's statistics


def outcomes(
    turns: TurnTable, statistics: str, invalid_penalty: float, penalty_on: PenaltyOn = "step"
) -> Outcomes:
    """Return the scores that episode advantages are computed from.

    Statistics of `rollout` count each rollout once. Those of `turn` give every row a score, its
    rollout's return less the penalty if the row is invalid: so long rollouts weigh more. A penalty
    on the `return` is taken off the rollout's return. One on the `row` is taken off the score of
    the invalid row alone; the rows of a rollout then share its weight in statistics of `rollout`.
    `step` leaves the scores alone, but for those of `statistics="turn"`.
    """
    one_of("statistics", statistics, ("rollout", "turn"))
    reward, local = penalised(turns, invalid_penalty, penalty_on)  # [N] each
    returns = np.bincount(turns.rollout, weights=reward).astype(np.float64)  # [R]
    if statistics == "rollout" and penalty_on != "row":
        group = encode(turns.group[turns.starts])
        return Outcomes(returns, group, turns.rollout, np.ones(len(returns)))
    length = np.bincount(turns.rollout)[turns.rollout]
    weight = 1.0 / length if statistics == "rollout" else np.ones(len(turns))
    rows = np.arange(len(turns), dtype=np.int64)
    return Outcomes(returns[turns.rollout] - local, encode(turns.group), rows, weight)
