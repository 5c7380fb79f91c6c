"""The evidence of training seeds: a paired difference of two methods, its power, and seeds needed.

Runs with one seed share their first weights and their tasks, so two methods are compared by the
differences of the seeds that both have. They count as independent and normally distributed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from harness.evaluation.statistics import (
    mean_and_std,
    student_interval,
    student_p_value,
    student_quantile,
)
from harness.types.arrays import Floats

SETTLED, LEANING, OPEN = "settled", "leaning", "not told apart"
"""Readings: p < 0.05 after Holm's correction; p < 0.2 as it is; neither."""
MOST_SEEDS: Final = 1000
"""More seeds than this are not counted."""
_CERTAIN: Final = 0.8  # share of the spreads that the cautious one exceeds; and the wanted power
_MASSES: Final = 500


@dataclass(frozen=True, slots=True)
class Apart:
    """The difference of two methods over the seeds that both have, the first minus the second.

    Attributes:
        seeds: The number of seeds, at least two.
        mean: The mean difference, in the unit of the values.
        std: The standard deviation of the seeds' differences (ddof 1).
        interval: The 95 % interval of the mean by Student's t; None without a spread.
        p_value: The two-sided p of the t-test; without a spread that of the sign test.
    """

    seeds: int
    mean: float
    std: float
    interval: tuple[float, float] | None
    p_value: float

    @property
    def cautious_std(self) -> float:
        """The spread that the true one exceeds with a probability of 0.2 only.

        Few seeds tell their spread badly; seeds planned by this one suffice four times in five.
        Reference: Browne 1995, Statistics in Medicine 14, 1933-1940.
        """
        spread, mass = _spreads(self.seeds - 1)
        return self.std / float(np.interp(1 - _CERTAIN, np.cumsum(mass) - mass / 2, spread))

    def power(self, difference: float) -> float | None:
        """Return the chance that as many seeds tell such a difference; None without a spread."""
        return power(difference / self.std, self.seeds) if self.std else None

    def needed(self, difference: float) -> tuple[int | None, int | None] | None:
        """Return the seeds that tell such a difference with 80 % power, by spread and cautious one.

        A number above `MOST_SEEDS` is None, and so is all without a spread or a difference.
        """
        if not self.std or not difference:
            return None
        first, second = (seeds_needed(difference / std) for std in (self.std, self.cautious_std))
        return first, second


def apart(first: Sequence[float], second: Sequence[float]) -> Apart:
    """Compare two methods by their values at equal seeds, at least two; see `Apart`."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    mean, std = mean_and_std(differences)
    if mean is None or std is None:
        raise ValueError(f"a comparison needs two seeds of both methods, got {len(differences)}")
    count = len(differences)
    if std <= 1e-12 * max(1.0, abs(mean)):
        # Equal differences tell no spread; all seeds may still lie on one side by chance.
        return Apart(count, mean, 0.0, None, 2.0 ** (1 - count) if abs(mean) > 1e-12 else 1.0)
    p_value = student_p_value(mean / std * math.sqrt(count), count - 1)
    return Apart(count, mean, std, student_interval(differences), p_value)


def readings(compared: Sequence[Apart]) -> list[str]:
    """Return a reading of each of several comparisons, which share a chance of error of 5 %.

    Reference: Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
    """
    order = sorted(range(len(compared)), key=lambda i: compared[i].p_value)
    found, goes_on = [OPEN] * len(compared), True
    for rank, i in enumerate(order):
        goes_on = goes_on and compared[i].p_value * (len(order) - rank) < 0.05
        found[i] = SETTLED if goes_on else LEANING if compared[i].p_value < 0.2 else OPEN
    return found


def power(effect: float, count: int) -> float:
    """Return the power of the two-sided paired t-test at 5 %.

    `effect` is the mean difference over its standard deviation, `count` the number of seeds. The
    noncentral t distribution is summed over the spread of a sample, to about 1e-5.
    """
    spread, mass = _spreads(count - 1)
    bound, shift = student_quantile(count - 1) * spread, abs(effect) * math.sqrt(count)
    return float((mass * (_normal(shift - bound) + _normal(-shift - bound))).sum())


def seeds_needed(effect: float) -> int | None:
    """Return the smallest number of seeds whose power is 80 %; None above `MOST_SEEDS`."""
    low, high = 1, 2
    while power(effect, high) < _CERTAIN:
        low, high = high, 2 * high
        if low >= MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, middle) >= _CERTAIN else (middle, high)
    return high if high <= MOST_SEEDS else None


@cache
def _spreads(degrees: int) -> tuple[Floats, Floats]:
    """Return sample spreads in units of the true one, and their probabilities (chi / sqrt(n))."""
    width = 8 / math.sqrt(2 * degrees)
    ends = np.linspace(max(0.0, 1 - width), 1 + width, _MASSES + 1)
    middle = (ends[1:] + ends[:-1]) / 2
    log = (degrees - 1) * np.log(middle) - degrees * middle**2 / 2
    density = np.exp(log - log.max())
    return middle, density / density.sum()


def _normal(z: Any) -> Floats:
    return np.array([math.erfc(-one / math.sqrt(2)) / 2 for one in z])
