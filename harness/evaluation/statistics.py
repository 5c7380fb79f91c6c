"""Wilson's and Student's intervals, bootstrap over tasks, deviation over seeds, McNemar's test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Final

import numpy as np

_Z95: Final = 1.959963984540054
DRAWS: Final = 10_000
"""Bootstrap samples; with so many, interval ends vary by about one percent of the width."""
_CELLS: Final = 1 << 22
"""Maximum numbers in one block of draws, which bounds the memory."""


def wilson(mean: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval (Wilson 1927) of the mean of `count` values in [0, 1].

    (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n) with z = 1.96; (0, 1) of no values. It
    is made for values of 0 and 1. Other values in [0, 1] with mean p have a variance of at most
    p(1-p), so for them it is too wide, never too narrow. It has a width even if all values are
    equal.
    """
    if not count:
        return 0.0, 1.0
    z2 = _Z95**2
    centre = (mean + z2 / (2 * count)) / (1 + z2 / count)
    variance = mean * (1 - mean) / count + z2 / (4 * count * count)
    half = _Z95 * math.sqrt(variance) / (1 + z2 / count)
    # For means of 0 and 1, bound and mean are equal up to rounding.
    low, high = min(mean, centre - half), max(mean, centre + half)
    return max(0.0, low), min(1.0, high)


def mean_and_std(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the mean (None of no values) and the deviation (ddof 1, None of fewer than two)."""
    if not values:
        return None, None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def student_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of a mean by Student's t, as over training seeds.

    mean +- t std / sqrt(n), where t is the 97.5 % quantile of n - 1 degrees of freedom; None for
    fewer than two values. The values count as independent and normally distributed; the bounds of
    shares may exceed 0 and 1.
    """
    mean, std = mean_and_std(values)
    if mean is None or std is None:
        return None
    half = student_quantile(len(values) - 1) * std / math.sqrt(len(values))
    return mean - half, mean + half


@cache
def student_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's distribution, given its degrees of freedom."""
    low, high = 0.0, 64.0  # the quantile is largest, 12.7, for one degree of freedom
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < 0.95 else (low, middle)
    return high


def student_p_value(t: float, degrees: int) -> float:
    """Return the two-sided p of a t statistic, given its degrees of freedom."""
    return max(0.0, 1.0 - _within(abs(t), degrees))


def _within(t: float, degrees: int) -> float:
    """Return P(|T| < t) of Student's distribution (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    odd, square = degrees % 2, math.cos(angle) ** 2
    term, total = math.cos(angle) if odd else 1.0, 0.0
    for k in range(1, degrees // 2 + 1):
        total += term
        term *= square * (2 * k - 1 + odd) / (2 * k + odd)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def bootstrap(
    values: Sequence[float], tasks: Sequence[Hashable], *, seed: int = 0, draws: int = DRAWS
) -> tuple[float, float]:
    """Return the 95 % percentile interval of a mean, by drawing whole tasks; nan of no values.

    Episodes of one task are not independent, so a sample draws tasks: as many as there are, with
    replacement, each with all its values. The sample's mean is the mean of all drawn values.
    Reference: Davison and Hinkley 1997, section 3.8, strategy 1.
    """
    if len(values) != len(tasks):
        raise ValueError(f"{len(values)} values need as many tasks, got {len(tasks)}")
    if not values:
        return math.nan, math.nan
    index = {task: i for i, task in enumerate(dict.fromkeys(tasks))}
    position = np.array([index[task] for task in tasks])  # [N] -> task
    totals = np.bincount(position, weights=np.asarray(values, dtype=np.float64))
    task = np.column_stack([totals, np.bincount(position)])  # [P, 2]: sum and number of its values
    # Tasks with equal rows are interchangeable, so each sample draws how often each kind of task
    # occurs (multinomial): the same distribution with fewer random numbers.
    kind, often = np.unique(task, axis=0, return_counts=True)  # [kinds, 2] and [kinds]
    rng = np.random.default_rng(seed)
    block = max(1, _CELLS // len(kind))  # bounds the memory of a draw
    drawn = [
        rng.multinomial(len(task), often / len(task), size=min(block, draws - start)) @ kind
        for start in range(0, draws, block)
    ]
    total = np.concatenate(drawn)  # [D, 2]: sum and number of a sample's values
    low, high = np.quantile(total[:, 0] / total[:, 1], [0.025, 0.975])
    return float(low), float(high)


def paired_bootstrap(
    first: Sequence[float], second: Sequence[float], tasks: Sequence[Hashable], *, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % interval of mean(first) - mean(second) over the same episodes."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    return bootstrap(differences, tasks, seed=seed)


def mcnemar(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact McNemar test; 1 if no pair differs.

    Under the null hypothesis each pair that differs is a win with probability 1/2: p = 2
    P(Binomial(wins + losses, 1/2) <= min(wins, losses)), at most 1. The pairs must be independent:
    one episode per task.
    """
    count, fewer = wins + losses, min(wins, losses)
    ways: int = sum(math.comb(count, k) for k in range(fewer + 1))
    two_sided: float = 2 * ways / (1 << count)
    return min(1.0, two_sided)
