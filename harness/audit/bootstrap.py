"""Figures with intervals by bootstrap over tasks, and their differences between methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.types.arrays import Floats

DRAWS: Final = 1000
"""Bootstrap samples of tasks."""

Statistic = Callable[[Floats], float]
"""Weight of each task in a sample [P] -> the figure, nan where it is not defined."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a method.

    Attributes:
        value: Over all tasks; nan where it is not defined.
        interval: 95 % percentile interval by bootstrap over tasks.
        over_first: Difference to the first method's figure.
        over_first_interval: Its interval, by the same samples of tasks.
    """

    value: float
    interval: tuple[float, float]
    over_first: float
    over_first_interval: tuple[float, float]


def samples(tasks: int, seed: int, draws: int) -> Floats:
    """Return the weights of the tasks: all once, then bootstrap samples. Shape [1 + draws, P]."""
    rng = np.random.default_rng([seed, tasks])
    drawn = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=draws)
    return np.concatenate([np.ones((1, tasks)), drawn]).astype(np.float64)


def figures(weights: Floats, statistics: Mapping[str, Statistic]) -> dict[str, Figure]:
    """Return the figure of each method, given its statistic and the `samples`."""
    found: dict[str, Figure] = {}
    first: Floats | None = None
    for name, statistic in statistics.items():
        drawn = np.array([statistic(sample) for sample in weights])
        first = drawn if first is None else first
        apart = drawn - first
        found[name] = Figure(
            float(drawn[0]), _interval(drawn[1:]), float(apart[0]), _interval(apart[1:])
        )
    return found


def _interval(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.percentile(known, (2.5, 97.5))
    return float(low), float(high)
