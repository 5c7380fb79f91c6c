"""Measures the bias of several estimators on one world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from harness.audit.bias.figures import Bias, bias_of
from harness.audit.bias.sampling import REWARD_SCALE, Drawn, draw, rows_of
from harness.audit.bias.worlds import Objective, World
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.errors import ConfigError

Estimate = Callable[[TurnTable], Floats]
"""An estimator with its hyperparameters: advantages of a table's turns. Shape [N]."""

_MOST_ROWS: Final = 60_000
"""Turns of a table that is credited at once, which bounds the memory."""
_TRIED: Final = 3
_SEPARATELY: Final = 200
"""Most steps of an estimator that has to be called for each."""


@dataclass(frozen=True, slots=True)
class Cell:
    """An estimator on a world.

    Attributes:
        world: The world's name.
        length: The most turns of an episode.
        size: The episodes of a group.
        name: The estimator's name, with its settings.
        steps: The steps that were drawn.
        bias: What was found.
    """

    world: str
    length: int
    size: int
    name: str
    steps: int
    bias: Bias


def measure(
    world: World,
    length: int,
    estimators: Mapping[str, tuple[Estimate, bool]],
    *,
    size: int = 8,
    steps: int = 400,
    groups: int = 8,
    objective: Objective = "success",
    continuations: int = 8,
    seed: int = 0,
) -> list[Cell]:
    """Return what is found about each estimator, on equal episodes; equal arguments, equal digits.

    Args:
        world: The world.
        length: The most turns of its episodes, as it was made.
        estimators: Estimators by name, and whether their `reward` is success in any case because
            they read the rewards of turns from `process_reward`.
        size: The episodes of a group, at least 2.
        steps: The steps to draw, at least 8.
        groups: The groups of a step, shared among the tasks.
        objective: The return whose gradient is sought.
        continuations: Those of `state_value`.
        seed: The seed of the episodes.
    """
    per_task, rest = divmod(groups, len(world.tasks))
    if size < 2 or steps < 8 or per_task < 1 or rest:
        raise ConfigError(
            f"groups have 2 or more episodes, got {size}; 8 steps are the fewest, got {steps}; and "
            f"groups are a multiple of the {len(world.tasks)} tasks, got {groups}"
        )
    exact = world.gradient(objective)
    if not np.abs(exact).max() > 0:
        raise ConfigError(f"the gradient of {objective} is zero on {world.name}: take another one")
    rng = np.random.default_rng([seed, size, length])
    chunk = max(8, _MOST_ROWS // (groups * size * length))
    control: list[Floats] = []
    found: dict[str, list[Floats]] = {name: [] for name in estimators}
    alone: dict[str, bool] = {}
    for start in range(0, steps, chunk):
        count = min(chunk, steps - start)
        drawn = draw(
            world, count, per_task, size, rng, objective=objective, continuations=continuations
        )
        control.append(drawn.gradients(drawn.advantage, count))
        for name, (estimate, reads_turns) in estimators.items():
            if alone.get(name) and start >= _SEPARATELY:
                continue
            given = _for(drawn, objective, reads_turns)
            if name not in alone:
                alone[name] = _needs_a_step(estimate, given)
            advantage = _by_step(estimate, given) if alone[name] else estimate(given.turns)
            found[name].append(drawn.gradients(advantage / REWARD_SCALE, count))
    return [
        _cell(name, parts, control, exact, Cell(world.name, length, size, name, 0, _NONE))
        for name, parts in found.items()
    ]


_NONE: Final = Bias(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _cell(
    name: str, parts: Sequence[Floats], control: Sequence[Floats], exact: Floats, empty: Cell
) -> Cell:
    gradients = np.concatenate(parts)
    bias = bias_of(gradients, np.concatenate(control)[: len(gradients)], exact)
    return replace(empty, steps=len(gradients), bias=bias)


def _for(drawn: Drawn, objective: Objective, reads_turns: bool) -> Drawn:
    """Return episodes with the columns of rewards that an estimator reads for an objective."""
    if objective == "success":
        return drawn
    if reads_turns:
        inner = np.where(drawn.turns.goes_on, drawn.environment, 0.0)
        process = REWARD_SCALE * inner
        return replace(drawn, turns=replace(drawn.turns, process_reward=process))
    return replace(drawn, turns=replace(drawn.turns, reward=REWARD_SCALE * drawn.environment))


def _needs_a_step(estimate: Estimate, drawn: Drawn) -> bool:
    """Return whether a step's advantages depend on other steps in its table."""
    steps = list(_first(drawn))
    end = steps[-1][0].stop
    together = estimate(rows_of(drawn.turns, slice(0, end)))
    apart = np.concatenate([estimate(table) for _, table in steps])
    return not np.allclose(together, apart, rtol=1e-9, atol=1e-9)


def _first(drawn: Drawn) -> Iterator[tuple[slice, TurnTable]]:
    for number, step in enumerate(drawn.by_step()):
        if number == _TRIED:
            return
        yield step


def _by_step(estimate: Estimate, drawn: Drawn) -> Floats:
    return np.concatenate([estimate(table) for _, table in drawn.by_step()])
