"""What is counted: tasks played with a seed, and the mean of a value over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.statistics import bootstrap, mean_and_std, wilson


@dataclass(frozen=True, slots=True)
class Unit:
    """A task played with one seed, in one trial or several.

    Attributes:
        trials: Its episodes in order, at least one.
    """

    trials: tuple[EpisodeRecord, ...]

    @property
    def task_id(self) -> str:
        """The task."""
        return self.trials[0].task_id

    @property
    def index(self) -> int:
        """Of the task in the evaluation."""
        return self.trials[0].index

    @property
    def seed(self) -> int:
        """One of the evaluation's seeds."""
        return self.trials[0].seed

    @property
    def family(self) -> str:
        """The task's family."""
        return self.trials[0].family

    @property
    def success(self) -> bool:
        """Whether any trial succeeded."""
        return self.success_within(len(self.trials))

    @property
    def score(self) -> float:
        """Score of the last trial played."""
        return self.trials[-1].score

    def success_within(self, trials: int) -> bool:
        """Return whether one of the first `trials` trials succeeded."""
        return any(episode.success for episode in self.trials[:trials])

    def metric(self, name: str) -> float | None:
        """Return an environment's own figure after the last trial; None where unknown."""
        value = self.trials[-1].metrics.get(name)
        return None if value is None or value != value else float(value)


def units_of(episodes: Sequence[EpisodeRecord]) -> list[Unit]:
    """Return episodes by seed and task, the trials of each in order."""
    found: dict[tuple[int, int], list[EpisodeRecord]] = {}
    for episode in sorted(episodes, key=lambda e: e.place):
        found.setdefault((episode.seed, episode.index), []).append(episode)
    return [Unit(tuple(trials)) for trials in found.values()]


@dataclass(frozen=True, slots=True)
class Value:
    """One number of a mean.

    Attributes:
        number: A share in [0, 1], or of any range; see `mean_of`.
        task: What was drawn: values of one task are not independent.
        seed: One of the evaluation's seeds.
    """

    number: float
    task: str
    seed: int


def mean_of(values: Sequence[Value], seeds: Sequence[int], *, share: bool = True) -> dict[str, Any]:
    """Return a mean with its 95 % interval, JSON-plain.

    One seed: the Wilson interval. Several: the bootstrap over tasks, and where that has no width
    because all tasks came out alike, the Wilson interval of as many values as there are tasks.

    Args:
        values: At most one per task and seed.
        seeds: The evaluation's.
        share: The values are in [0, 1]. Others always have a bootstrap interval.

    Returns:
        `mean`, `interval` ([low, high]), `kind` (`"wilson"` or `"bootstrap"`), `count` (of values),
        `per_seed` (mean of each seed, None where it has no value) and `std` (over seeds, ddof 1).
        What cannot be told is None.
    """
    numbers, tasks = [v.number for v in values], [v.task for v in values]
    per_seed = [mean_and_std([v.number for v in values if v.seed == seed])[0] for seed in seeds]
    mean, _ = mean_and_std(numbers)
    interval, kind = None, "bootstrap"
    if mean is not None and (len(seeds) > 1 or not share):
        low, high = bootstrap(numbers, tasks)
        interval = [low, high] if low < high else None
    if mean is not None and share and interval is None:
        interval, kind = list(wilson(mean, len(set(tasks)))), "wilson"
    return {
        "mean": mean,
        "interval": interval,
        "kind": kind,
        "count": len(values),
        "per_seed": per_seed,
        "std": mean_and_std([m for m in per_seed if m is not None])[1],
    }


def mean_over(
    units: Sequence[Unit],
    seeds: Sequence[int],
    number: Callable[[Unit], float | None],
    *,
    share: bool = True,
) -> dict[str, Any]:
    """Return the mean of a number of each unit, those left out that have none; see `mean_of`."""
    told = [(unit, number(unit)) for unit in units]
    values = [Value(float(n), unit.task_id, unit.seed) for unit, n in told if n is not None]
    return mean_of(values, seeds, share=share)


def success_and_score(units: Sequence[Unit], seeds: Sequence[int]) -> dict[str, Any]:
    """Return what every group of units is counted by: `success`, `score` and `count`."""
    return {
        "success": mean_over(units, seeds, lambda unit: unit.success),
        "score": mean_over(units, seeds, lambda unit: unit.score),
        "count": len(units),
    }


def grouped(units: Sequence[Unit], name: Callable[[Unit], str]) -> dict[str, list[Unit]]:
    """Return units by name, the names in order."""
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(name(unit), []).append(unit)
    return dict(sorted(groups.items()))
