"""The middle of a training step: rollouts in, credit out, and what annotators learn from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from harness import annotators, credit
from harness.annotators import Annotator, Surroundings
from harness.annotators.surroundings import lengths_of
from harness.config import Config
from harness.credit import TurnTable, diagnostics
from harness.credit.table import Floats, Ints
from harness.credit.tokens import by_turn, token_table
from harness.methods import Method
from harness.rollout import Rollout


@dataclass(frozen=True, slots=True, eq=False)
class Credit:
    """What a step's rollouts earned.

    Attributes:
        rows: The table that credit was computed on; its rows are turns, or tokens.
        turns: The table of turns, with what annotators found out about them.
        advantage: Of each turn, shape [N]; or for each turn an array of its tokens' advantages.
        figures: To log.
    """

    rows: TurnTable
    turns: TurnTable
    advantage: Floats | list[Floats]
    figures: dict[str, float]

    def columns(self) -> dict[str, Floats]:
        """Return what annotators found out about each turn. Shapes [N]."""
        columns = {name: getattr(self.turns, name) for name in _OF_TURN}
        return {name: column for name, column in columns.items() if column is not None}


class CreditAssignment:
    """Tabulates, annotates and estimates: hops 4 to 6 of a training step.

    Args:
        config: The run, resolved.
        method: What it trains by.
        settings: The estimator's hyperparameters, scorers opened.
        around: What annotators work with.

    Attributes:
        annotators: By name, in the order in which they fill the table and learn.
    """

    def __init__(
        self, config: Config, method: Method, settings: dict[str, Any], around: Surroundings
    ) -> None:
        """Make the annotators."""
        self._config, self._rows = config.method, around.rows
        self._name, self._settings = method.estimator, settings
        self.annotators: dict[str, Annotator] = {
            name: annotators.make(name, given, around)
            for name, given in config.method.annotators.items()
        }

    def assign(self, rollouts: Sequence[Rollout]) -> Credit:
        """Return the credit of rollouts without errors."""
        turns = TurnTable.from_rollouts(
            rollouts, reward=self._config.reward, reward_scale=self._config.reward_scale
        )
        lengths = lengths_of(rollouts) if self._rows == "token" else None
        rows = turns if lengths is None else token_table(turns, lengths)
        for annotator in self.annotators.values():
            rows = annotator.annotate(rows, rollouts)
        advantage = credit.get(self._name)(rows, **self._settings)
        if lengths is None:
            figures = diagnostics.summarise(rows, advantage, self._name, self._settings)
            return Credit(rows, rows, advantage, figures)
        turns = _of_turns(turns, rows, lengths)
        figures = diagnostics.summarise(
            turns, _mean(advantage, lengths), self._name, self._settings
        )
        return Credit(rows, turns, by_turn(advantage, lengths), figures)

    def learn(
        self, credit: Credit, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Let every annotator learn from a step, and return their figures."""
        figures: dict[str, float] = {}
        for annotator in self.annotators.values():
            figures |= annotator.learn(credit.rows, rollouts, step=step, seed=seed)
        return figures


def _of_turns(turns: TurnTable, rows: TurnTable, lengths: Ints) -> TurnTable:
    """Return the table of turns with the columns that annotators gave to tokens."""
    filled: dict[str, Any] = {}
    for name, of_turn in _OF_TURN.items():
        column = getattr(rows, name)
        if column is not None:
            filled[name] = of_turn(column, lengths)
    return replace(turns, **filled)


def _sum(x: Floats, lengths: Ints) -> Floats:
    """Return the sum over each turn's tokens. Shape [N]."""
    sums: Floats = np.add.reduceat(x, np.cumsum(lengths) - lengths)
    return sums


def _mean(x: Floats, lengths: Ints) -> Floats:
    return _sum(x, lengths) / lengths


def _geometric_mean(x: Floats, lengths: Ints) -> Floats:
    mean: Floats = np.exp(_mean(np.log(x), lengths))
    return mean


def _first(x: Floats, lengths: Ints) -> Floats:
    first: Floats = x[np.cumsum(lengths) - lengths]
    return first


_OF_TURN: Final[dict[str, Callable[[Floats, Ints], Floats]]] = {
    "value": _first,
    "process_reward": _sum,
    "entropy": _mean,
    "hindsight": _geometric_mean,
    "kl": _sum,
}
"""What a turn has of a column that was given to its tokens."""
