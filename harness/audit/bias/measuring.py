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
"""An estimator with its hyperparameters: advantages of a table's turns, shape [N]; raises `Lacking`
if it needs what the table has not."""


class Lacking(Exception):
    """The table has not the columns, which are the arguments, that an estimator needs."""


_MOST_ROWS: Final = 60_000
"""Turns of a table that is credited at once, which bounds the memory."""
_TRIED: Final = 3
_SEPARATELY: Final = 200
"""Most steps of an estimator that has to be called for each."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The bias and noise of the estimator `name`, with its settings, on a world.

    Episodes have at most `length` turns, groups `size` episodes; `steps` steps were drawn.
    """

    world: str
    length: int
    size: int
    name: str
    steps: int
    bias: Bias


def measure(
    world: World,
    estimators: Mapping[str, Estimate],
    *,
    size: int = 8,
    steps: int = 400,
    groups: int = 8,
    objective: Objective = "success",
    continuations: int = 8,
    seed: int = 0,
) -> tuple[list[Cell], dict[str, tuple[str, ...]]]:
    """Measure estimators on equal episodes; equal arguments give equal digits.

    Returns what is found about each estimator, and the columns that others lack on this world.
    Raises `ConfigError` if a number is out of its range, or the gradient is zero.

    Args:
        world: The world.
        estimators: Estimators by name.
        size: The episodes of a group, at least 2.
        steps: The steps to draw, at least 8.
        groups: The groups of a step, shared among the tasks.
        objective: The return whose gradient is sought. With `environment` the table has the rewards
            of turns in `process_reward`, for estimators that read it, and else in `reward`.
        continuations: The continuations of each `state_value`.
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
    longest = max(task.model.horizon for task in world.tasks)
    rng = np.random.default_rng([seed, size, longest])
    chunk = max(8, _MOST_ROWS // (groups * size * longest))
    control: list[Floats] = []
    found: dict[str, list[Floats]] = {name: [] for name in estimators}
    alone: dict[str, bool] = {}
    lacking: dict[str, tuple[str, ...]] = {}
    for start in range(0, steps, chunk):
        count = min(chunk, steps - start)
        drawn = draw(
            world, count, per_task, size, rng, objective=objective, continuations=continuations
        )
        control.append(drawn.gradients(drawn.advantage, count))
        forms = _forms(drawn) if objective == "environment" else [drawn]
        for name, estimate in estimators.items():
            if name in lacking or (alone.get(name) and start >= _SEPARATELY):
                continue
            try:
                given = _readable(estimate, forms)
            except Lacking as e:
                lacking[name] = e.args
                continue
            if name not in alone:
                alone[name] = _needs_a_step(estimate, given)
            advantage = _by_step(estimate, given) if alone[name] else estimate(given.turns)
            found[name].append(drawn.gradients(advantage / REWARD_SCALE, count))
    cells = []
    for name, parts in found.items():
        if name in lacking:
            continue
        gradients = np.concatenate(parts)
        bias = bias_of(gradients, np.concatenate(control)[: len(gradients)], exact)
        cells.append(Cell(world.name, longest, size, name, len(gradients), bias))
    return cells, lacking


def _forms(drawn: Drawn) -> list[Drawn]:
    """Return episodes with the rewards of turns in `reward`, and in `process_reward`."""
    inner = np.where(drawn.turns.goes_on, drawn.environment, 0.0)
    own = replace(drawn.turns, reward=REWARD_SCALE * drawn.environment)
    process = replace(drawn.turns, process_reward=REWARD_SCALE * inner)
    return [replace(drawn, turns=own), replace(drawn, turns=process)]


def _readable(estimate: Estimate, forms: Sequence[Drawn]) -> Drawn:
    """Return the first form that has an estimator's columns, or raise `Lacking`."""
    for form in forms:
        try:
            estimate(rows_of(form.turns, next(form.by_step())[0]))
        except Lacking as e:
            missing = e
        else:
            return form
    raise missing


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
