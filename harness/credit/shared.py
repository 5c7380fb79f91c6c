"""Settings that many estimators take, and the terms that they make of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from harness.credit import groups, returns
from harness.credit.groups import Norm
from harness.credit.registry import Estimator
from harness.credit.returns import Outcomes, PenaltyOn, Statistics
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints
from harness.types.hyperparameters import number, one_of

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
            `statistics="turn"` lose it with `step`, too. See `harness.credit.returns`.
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
        """Return the scores that are compared in a group; see `returns.outcomes`."""
        return returns.outcomes(turns, self.statistics, self.invalid_penalty, self.penalty_on)

    def step_returns(self, turns: TurnTable) -> Floats:
        """Return R_t, the discounted return from each turn on; see `returns.step_returns`. [N]."""
        return returns.step_returns(turns, self.gamma, self.invalid_penalty, self.penalty_on)

    def penalised(self, turns: TurnTable) -> tuple[Floats, Floats]:
        """Return rewards less penalties on the return, and local penalties. Shapes [N] each."""
        return returns.penalised(turns, self.invalid_penalty, self.penalty_on)

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
