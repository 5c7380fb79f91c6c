"""Several samples of each task: their average success, and pass@k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from harness.evaluation.units import Unit, Value, grouped, mean_of, mean_over

_ALL_SEEDS: Final = -1
"""The seed of a value that pools all seeds of a task."""


def pass_at(count: int, won: int, k: int) -> float:
    """Return the probability that at least one of k of a task's n samples succeeded.

    1 - C(n - c, k) / C(n, k) for c successes: the unbiased estimate, drawn without replacement, of
    Chen et al. 2021, equation 1.
    """
    return 1 - math.comb(count - won, k) / math.comb(count, k)


def summarise(units: Sequence[Unit], seeds: Sequence[int]) -> dict[str, Any]:
    """Return average success and pass@k over samples; a task has one sample for each seed.

    `n` is the largest number of samples of a task, `average` the mean success of all samples, and
    `pass` has for each `k` up to n the mean `success` over tasks with at least k samples. Intervals
    are those of `mean_of`, by drawing tasks.
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
        Value(pass_at(len(of), sum(unit.success for unit in of), k), of[0].task_id, _ALL_SEEDS)
        for of in tasks
        if len(of) >= k
    ]
    return mean_of(values, seeds)
