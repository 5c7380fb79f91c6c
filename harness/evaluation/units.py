"""Units, which are tasks played with a seed, and means over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.statistics import bootstrap, mean_and_std, wilson


@dataclass(frozen=True, slots=True)
class Unit:
    """A task played with one seed, in at least one trial."""

    trials: tuple[EpisodeRecord, ...]

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.trials[0].task_id

    @property
    def index(self) -> int:
        """Position of the task in the evaluation."""
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
        """Score of the last trial."""
        return self.trials[-1].score

    @property
    def steps(self) -> int:
        """Environment steps of all trials."""
        return sum(episode.steps for episode in self.trials)

    @property
    def tokens(self) -> int:
        """Tokens of all trials, prompts and responses."""
        return sum(episode.usage.prompt + episode.usage.response for episode in self.trials)

    def success_within(self, trials: int) -> bool:
        """Return whether one of the first `trials` trials succeeded."""
        return any(episode.success for episode in self.trials[:trials])

    def metric(self, name: str) -> float | None:
        """Return a metric of the environment after the last trial; None if unknown."""
        value = self.trials[-1].metrics.get(name)
        return None if value is None or value != value else float(value)


def units_of(episodes: Sequence[EpisodeRecord]) -> list[Unit]:
    """Return the units of episodes, sorted by seed and task."""
    found: dict[tuple[int, int], list[EpisodeRecord]] = {}
    for episode in sorted(episodes, key=lambda e: e.order):
        found.setdefault((episode.seed, episode.index), []).append(episode)
    return [Unit(tuple(trials)) for trials in found.values()]


@dataclass(frozen=True, slots=True)
class Value:
    """One number of a mean, with its task (which the bootstrap draws) and seed."""

    number: float
    task: str
    seed: int


def mean_of(values: Sequence[Value], seeds: Sequence[int], *, share: bool = True) -> dict[str, Any]:
    """Return a mean with its 95 % interval, as plain JSON values.

    With one seed the interval is Wilson's. With several seeds it is a bootstrap over tasks; if all
    tasks have equal means, that has no width, and Wilson's interval for as many values as tasks is
    taken instead. Values outside [0, 1] (`share=False`) always have a bootstrap interval.

    The keys are `mean`, `interval` ([low, high]), `kind` (`"wilson"` or `"bootstrap"`), `count`
    (number of values), `per_seed` (mean of each seed, None without values) and `std` (over seeds,
    ddof 1). Figures without enough values are None.
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
    """Return the mean of a number over units; units for which it is None are left out."""
    numbers = [(unit, number(unit)) for unit in units]
    values = [Value(float(n), unit.task_id, unit.seed) for unit, n in numbers if n is not None]
    return mean_of(values, seeds, share=share)


def success_and_score(units: Sequence[Unit], seeds: Sequence[int]) -> dict[str, Any]:
    """Return the means `success` and `score` of units, and their `count`."""
    return {
        "success": mean_over(units, seeds, lambda unit: unit.success),
        "score": mean_over(units, seeds, lambda unit: unit.score),
        "count": len(units),
    }


def grouped(units: Sequence[Unit], name: Callable[[Unit], str]) -> dict[str, list[Unit]]:
    """Return units grouped by a name, sorted by the names."""
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(name(unit), []).append(unit)
    return dict(sorted(groups.items()))
