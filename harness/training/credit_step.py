"""Credit assignment: computes the advantages of a step's rollouts and updates the annotators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from harness import annotators, prompts
from harness.annotators import Annotator, AnnotatorContext
from harness.config import Config, methods
from harness.config.methods import Method
from harness.credit import TurnTable, diagnostics, registry
from harness.credit.shared import overlong_penalties
from harness.credit.tokens import by_turn, token_table
from harness.distributed.process_group import ProcessGroup
from harness.model.policy import Policy
from harness.types.arrays import Floats, Ints
from harness.types.rollout import Rollout, lengths_of


@dataclass(frozen=True, slots=True, eq=False)
class Credit:
    """The advantages of a step's rollouts."""

    rows: TurnTable  # the estimator's table; a row is a turn or a token
    turns: TurnTable  # with the columns that annotators filled
    advantage: Floats | list[Floats]  # [N], or one array of tokens for each turn

    def columns(self) -> dict[str, Floats]:
        """Return the columns that annotators filled, by name. Shapes [N]."""
        return _filled(self.turns)


class CreditAssignment:
    """Makes the turn table, lets annotators fill it in their order, and computes advantages.

    `settings` are the estimator's hyperparameters, with loaded scorers in place of their names.
    """

    def __init__(
        self, config: Config, method: Method, settings: dict[str, Any], context: AnnotatorContext
    ) -> None:
        self._config, self._rows = config.method, context.rows
        self._max_tokens = config.agent.answer_tokens
        self.use(method.estimator, settings)
        self.annotators: dict[str, Annotator] = {
            name: annotators.make(name, given, context)
            for name, given in config.method.annotators.items()
        }

    def use(self, estimator: str, settings: dict[str, Any]) -> None:
        """Take another estimator; raise `ConfigError` if it does not have these settings."""
        self._name, self._needs = estimator, registry.needs(estimator, settings)
        self._estimate, self._layers = registry.prepared(estimator, settings)

    def assign(self, rollouts: Sequence[Rollout]) -> Credit:
        """Return the credit of rollouts that have no errors."""
        turns = TurnTable.from_rollouts(
            rollouts, reward=self._config.reward, reward_scale=self._config.reward_scale
        )
        lengths = lengths_of(rollouts)
        answers = [turn.completion for rollout in rollouts for turn in rollout.turns]
        sizes = np.asarray([one.num_sampled for one in answers], dtype=np.int64)  # [N]
        overlong = overlong_penalties(sizes, self._max_tokens, self._config.overlong_share or 0.0)
        turns = replace(turns, reward=turns.reward - self._config.reward_scale * overlong)
        by_token = self._rows == "token"
        rows = token_table(turns, lengths) if by_token else turns
        for annotator in self.annotators.values():
            rows = annotator.annotate(rows, rollouts)
        rows.require(self._needs, f"estimator {self._name!r}")
        advantage = self._estimate(rows)  # [N], or [A] by token
        if not by_token:
            return Credit(rows, rows, advantage)
        reduced: dict[str, Any] = {
            name: _TURN_REDUCTIONS[name](column, lengths) for name, column in _filled(rows).items()
        }
        return Credit(rows, replace(turns, **reduced), by_turn(advantage, lengths))

    def diagnose(self, credit: Credit) -> dict[str, float]:
        """Return the figures of a step's credit, under `credit/`."""
        advantage = credit.advantage
        if isinstance(advantage, list):
            advantage = np.array([tokens.mean() for tokens in advantage])  # [N]
        return diagnostics.summarise(credit.turns, advantage, self._layers)

    def learn(
        self, credit: Credit, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Update every annotator from a step and return their figures."""
        figures: dict[str, float] = {}
        for annotator in self.annotators.values():
            figures |= annotator.learn(credit.rows, rollouts, step=step, seed=seed)
        return figures


def make_credit(
    config: Config,
    policy: Policy,
    reference: Policy | None,
    settings: dict[str, Any],
    processes: ProcessGroup,
) -> CreditAssignment:
    """Return a run's credit assignment; `settings` are the estimator's, with loaded scorers."""
    method = methods.get(config.method.name)
    context = AnnotatorContext(
        policy,
        reference,
        context=config.agent.context,
        rows=str(config.method.rows),
        temperature=config.agent.temperature,
        max_tokens=config.optimizer.micro_batch_tokens,
        estimator=method.estimator,
        credit=settings,
        processes=processes,
        style=prompts.load(
            config.agent.style, config.env.id, config.agent.tool_format, config.env.kwargs
        ),
    )
    return CreditAssignment(config, method, settings, context)


def _filled(rows: TurnTable) -> dict[str, Floats]:
    columns = {name: getattr(rows, name) for name in _TURN_REDUCTIONS}
    return {name: column for name, column in columns.items() if column is not None}


def _sum(x: Floats, lengths: Ints) -> Floats:
    sums: Floats = np.add.reduceat(x, np.cumsum(lengths) - lengths)  # [A] -> [N]
    return sums


def _mean(x: Floats, lengths: Ints) -> Floats:
    return _sum(x, lengths) / lengths


def _geometric_mean(x: Floats, lengths: Ints) -> Floats:
    mean: Floats = np.exp(_mean(np.log(x), lengths))
    return mean


def _first(x: Floats, lengths: Ints) -> Floats:
    first: Floats = x[np.cumsum(lengths) - lengths]
    return first


_TURN_REDUCTIONS: Final[dict[str, Callable[[Floats, Ints], Floats]]] = {
    "value": _first,
    "process_reward": _sum,
    "entropy": _mean,
    "hindsight": _geometric_mean,
    "kl": _sum,
    "teacher_kl": _sum,
    "length": _first,
    "state_value": _first,
}
"""How each token column is reduced to a column of turns."""
