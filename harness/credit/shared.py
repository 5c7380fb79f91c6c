"""Returns of rollouts, settings that many estimators take, and the terms made of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from harness.credit import groups
from harness.credit.groups import Norm, encode
from harness.credit.registry import Estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints
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


Singleton = Literal["zero", "raw"]

PENALTY: Final = ("invalid_penalty", "penalty_on")
OUTCOMES: Final = ("statistics", *PENALTY)
SCALE: Final = ("norm", "ddof", "eps")
EPISODE: Final = (*SCALE, *OUTCOMES)
"""The settings of `Shared.episode`, but for `singleton`."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Settings that many estimators take. Each one takes those that its `with_shared` names.

    Attributes:
        norm: `std` divides by the standard deviation, `mean` only subtracts the mean.
        ddof: 1 for the sample standard deviation, 0 for the population's.
        eps: A number that is added to the standard deviation; at least 0.
        statistics: `rollout` counts each rollout once, as the papers write. `turn` counts each row,
            so that long rollouts weigh more, with the penalty inside the row's own score, as
            verl-agent's released code does.
        gamma: Discount of later rewards, in [0, 1].
        invalid_penalty: A number that an invalid action loses; at least 0.
        penalty_on: The place where it is lost. `step`: the invalid turn's step return alone. `row`:
            the whole row, which is that and the turn's score in the episode part. `return`: the
            rollout's return, and so the step returns of all turns up to the invalid one. Scores of
            `statistics="turn"` lose it with `step`, too. See `outcomes` and `step_returns`.
        singleton: Advantage of a group of one score: `zero`, or `raw`, the score over 1 + eps (or
            as it is, with `norm="mean"`), as in verl-agent's released code, where a lone success is
            so learned from as if it were better than others. No preset sets it.
    """

    norm: Norm = "std"
    ddof: int = 1
    eps: float = 1e-6
    statistics: Statistics = "rollout"
    gamma: float = 0.95
    invalid_penalty: float = 0.1
    penalty_on: PenaltyOn = "step"
    singleton: Singleton = "zero"

    def __post_init__(self) -> None:
        """Refuse a setting out of its range, with `ConfigError`."""
        one_of("norm", self.norm, ("std", "mean"))
        one_of("ddof", self.ddof, (0, 1))
        number("eps", self.eps, 0)
        one_of("statistics", self.statistics, ("rollout", "turn"))
        number("gamma", self.gamma, 0, 1)
        number("invalid_penalty", self.invalid_penalty, 0)
        one_of("penalty_on", self.penalty_on, ("step", "row", "return"))
        one_of("singleton", self.singleton, ("zero", "raw"))

    def episode(self, turns: TurnTable) -> Floats:
        """Return A_E, GRPO's advantage of each turn's rollout; see `grpo`. Shape [N]."""
        score, group, owner, weight = self.outcomes(turns)  # K rollouts, or the N rows
        advantage = self.standardise(score, group, weight)  # [K]
        if self.singleton == "raw":
            raw = score / (1.0 + self.eps) if self.norm == "std" else score
            advantage = np.where(groups.group_weight(weight, group) == 1, raw, advantage)
        return advantage[owner]

    def outcomes(self, turns: TurnTable) -> Outcomes:
        """Return the scores that are compared in a group; see `outcomes`."""
        return outcomes(turns, self.statistics, self.invalid_penalty, self.penalty_on)

    def step_returns(self, turns: TurnTable) -> Floats:
        """Return R_t, the discounted return from each turn on; see `step_returns`. [N]."""
        return step_returns(turns, self.gamma, self.invalid_penalty, self.penalty_on)

    def penalised(self, turns: TurnTable) -> tuple[Floats, Floats]:
        """Return rewards less penalties on the return, and local penalties. Shapes [N] each."""
        return penalised(turns, self.invalid_penalty, self.penalty_on)

    def row_penalty(self, turns: TurnTable) -> Floats:
        """Return the penalty of each row with `penalty_on="row"`, else 0. Shape [N]."""
        return self.penalised(turns)[1] if self.penalty_on == "row" else np.zeros(len(turns))

    def standardise(self, x: Floats, label: Ints, weight: Floats | None = None) -> Floats:
        """Return x relative to the rows of the same label; see `groups.standardise`. Shape [K]."""
        return groups.standardise(
            x, label, norm=self.norm, ddof=self.ddof, eps=self.eps, weight=weight
        )

    def whiten(self, x: Floats, counted: Bools) -> Floats:
        """Return x relative to all counted rows, whatever `norm` is. Shapes [K] each."""
        return groups.whiten(x, counted, ddof=self.ddof, eps=self.eps)


def with_shared(*names: str, **defaults: Any) -> Callable[[Estimator], Estimator]:
    """Let callers give fields of `Shared` as keywords, beside the estimator's other ones.

    The decorated function gets a `Shared` as its second argument. Its signature has the keywords in
    place of that, which is all that the registry, presets and recipes see, and its docstring names
    them. `names` are fields with the defaults of `Shared`, `defaults` fields with other ones.
    """
    base = Shared(**defaults)
    taken = dict.fromkeys((*names, *defaults))

    def decorate(function: Estimator) -> Estimator:
        @functools.wraps(function)
        def call(turns: TurnTable, **settings: Any) -> Floats:
            given = {name: settings.pop(name) for name in taken if name in settings}
            return function(turns, replace(base, **given), **settings)

        if function.__doc__:  # none with `python -OO`
            listed = ", ".join(taken)
            call.__doc__ = f"{function.__doc__}\n    Keywords of `{__name__}.Shared`: {listed}.\n"
        signature = inspect.signature(function)
        table, _, *rest = signature.parameters.values()
        kind = inspect.Parameter.KEYWORD_ONLY
        shared = [inspect.Parameter(name, kind, default=getattr(base, name)) for name in taken]
        parameters = sorted([table, *rest, *shared], key=lambda p: p.kind)  # `**settings` last
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call

    return decorate
