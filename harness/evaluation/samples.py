"""Several samples of each task: their average success, and pass@k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from harness.evaluation.units import Unit, Value, grouped, mean_of, mean_over

_OF_ALL: Final = -1
"""Seed of a value that is of all seeds of a task."""


def pass_at(count: int, won: int, k: int) -> float:
    """Return the probability that at least one of k samples succeeded, drawn without replacement.

    1 - C(n - c, k) / C(n, k), the unbiased estimate of Chen et al. 2021, equation 1.

    Args:
        count: Number of samples n of a task.
        won: Number of samples c that succeeded.
        k: From 1 to `count`.
    """
    return 1 - math.comb(count - won, k) / math.comb(count, k)


def summarise(units: Sequence[Unit], seeds: Sequence[int]) -> dict[str, Any]:
    """Return `samples` of an evaluation's figures.

    Each seed gives one sample of a task, all its trials together. Intervals are of `mean_of`, by
    drawing tasks.

    Args:
        units: All units that were played.
        seeds: The evaluation's seeds.

    Returns:
        `n`, the largest number of samples of a task; `average`, the mean success of all samples;
        `pass`, for each `k` up to n the mean `success` over tasks with at least k samples.
    """
    tasks = list(grouped(units, lambda unit: unit.task_id).values())
    most = max(map(len, tasks), default=0)
    return {
        "n": most,
        "average": mean_over(units, seeds, lambda unit: unit.success),
        "pass": [{"k": k, "success": _pass(tasks, seeds, k)} for k in range(1, most + 1)],
    }


def _pass(tasks: Sequence[Sequence[Unit]], seeds: Sequence[int], k: int) -> dict[str, Any]:
    values = [
        Value(pass_at(len(of), sum(unit.success for unit in of), k), of[0].task_id, _OF_ALL)
        for of in tasks
        if len(of) >= k
    ]
    return mean_of(values, seeds)
