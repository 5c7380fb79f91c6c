"""Compares two evaluations task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.evaluation.statistics import mcnemar, mean_and_std, paired_bootstrap
from harness.types.errors import PairingError

_SAME: Final = {
    "id": "of different environments",
    "split": "of different splits",
    "data_version": "of different data versions",
    "partner": "with different partners",
    "judge": "with different judges",
}
"""What two evaluations must have in common, and how they are called if they do not."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of the first minus mean of the second over the same units."""

    mean: float  # in [-1, 1]
    interval: tuple[float, float] | None  # 95 % over tasks; None if all tasks differ alike


@dataclass(frozen=True, slots=True)
class Changed:
    """A task and seed that one of two evaluations solved and the other did not."""

    task_id: str
    seed: int
    first: bool  # the first evaluation solved it


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two evaluations on the units, tasks with a seed, that both of them finished."""

    units: int  # finished by both
    tasks: int  # of these units
    only_first: int  # units that only the first finished; no other figure counts them
    only_second: int
    wins: int  # units that only the first solved
    losses: int  # units that only the second solved
    both: int
    neither: int
    success: Difference
    score: Difference
    p_value: float | None  # exact McNemar test; None with several seeds: not independent
    changed: tuple[Changed, ...]  # wins and losses, by seed and task

    @property
    def ties(self) -> int:
        """Number of units with the same outcome in both evaluations."""
        return self.both + self.neither


def pair(first: Mapping[str, Any], second: Mapping[str, Any]) -> Pairing:
    """Compare two evaluations, given their `result.json`; units count as in `figures.summarise`.

    Raises `PairingError` if environments, splits, data versions, partners or judges differ, or both
    have finished no task with the same seed.
    """
    _check(first, second)
    ours, theirs = _outcomes(first), _outcomes(second)
    common = sorted(ours.keys() & theirs.keys(), key=lambda unit: (unit[1], unit[0]))
    if not common:
        first_has, second_has = (
            f"{len({task for task, _ in outcomes})} tasks with seeds "
            + ", ".join(map(str, sorted({seed for _, seed in outcomes})))
            for outcomes in (ours, theirs)
        )
        raise PairingError(
            "no task was finished with the same seed by both evaluations: the first has "
            f"{first_has}, the second {second_has}"
        )
    tasks = [task_id for task_id, _ in common]
    won = [(ours[unit][0], theirs[unit][0]) for unit in common]
    changed = [Changed(*u, a) for u, (a, b) in zip(common, won, strict=True) if a != b]
    wins = sum(one.first for one in changed)
    losses = len(changed) - wins
    return Pairing(
        units=len(common),
        tasks=len(set(tasks)),
        only_first=len(ours) - len(common),
        only_second=len(theirs) - len(common),
        wins=wins,
        losses=losses,
        both=won.count((True, True)),
        neither=won.count((False, False)),
        success=_difference([a for a, _ in won], [b for _, b in won], tasks),
        score=_difference([ours[u][1] for u in common], [theirs[u][1] for u in common], tasks),
        p_value=mcnemar(wins, losses) if len(tasks) == len(set(tasks)) else None,
        changed=tuple(changed),
    )


def _check(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    for key, what in _SAME.items():
        a, b = ({**one["environment"], **one}.get(key) for one in (first, second))
        # Training runs do not record the version of their data.
        if a != b and not (key == "data_version" and None in (a, b)):
            raise PairingError(f"evaluations {what} cannot be compared task by task: {a} and {b}")


def _outcomes(result: Mapping[str, Any]) -> dict[tuple[str, int], tuple[bool, float]]:
    names = [task_id for task_id, _ in result["tasks"]]
    found: dict[tuple[str, int], tuple[bool, float]] = {}
    for index, seed, _, success, score, _ in sorted(result["outcomes"], key=lambda o: o[:3]):
        unit = names[index], seed
        found[unit] = (success or found.get(unit, (False, 0.0))[0], score)
    return found


def _difference(
    first: Sequence[float], second: Sequence[float], tasks: Sequence[str]
) -> Difference:
    mean, _ = mean_and_std([a - b for a, b in zip(first, second, strict=True)])
    low, high = paired_bootstrap(first, second, tasks)
    return Difference(mean or 0.0, (low, high) if low < high else None)
