"""An evaluation's episodes as units, which are tasks played with a seed, and means over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.statistics import bootstrap, mean_and_std, wilson

_ALL_SEEDS: Final = -1
"""The seed of a value that pools all seeds of a task."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A task played with one seed, in at least one trial."""

    trials: tuple[EpisodeRecord, ...]

    @property
    def last(self) -> EpisodeRecord:
        """The last trial; all have the same task, family and seed."""
        return self.trials[-1]

    @property
    def success(self) -> bool:
        """Whether any trial succeeded."""
        return any(episode.success for episode in self.trials)

    def metric(self, name: str) -> float | None:
        """Return a metric of the environment after the last trial; None if unknown."""
        value = self.last.metrics.get(name)
        return None if value is None or value != value else float(value)


@dataclass(frozen=True, slots=True)
class Value:
    """One number of a mean, with its task (which the bootstrap draws) and seed."""

    number: float
    task: str
    seed: int


@dataclass(frozen=True, slots=True)
class Units:
    """Units, all or a group of them, and the seeds of the evaluation."""

    units: Sequence[Unit]
    seeds: Sequence[int]

    def __len__(self) -> int:
        return len(self.units)

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.units)

    @classmethod
    def collect(cls, episodes: Sequence[EpisodeRecord], seeds: Sequence[int]) -> Units:
        """Return the units of episodes, sorted by seed and task."""
        found: dict[tuple[int, int], list[EpisodeRecord]] = {}
        for episode in sorted(episodes, key=lambda e: e.order):
            found.setdefault((episode.seed, episode.index), []).append(episode)
        return cls([Unit(tuple(trials)) for trials in found.values()], seeds)

    def grouped(self, name: Callable[[Unit], str]) -> dict[str, Units]:
        """Return the units grouped by a name, sorted by the names."""
        groups: dict[str, list[Unit]] = {}
        for unit in self.units:
            groups.setdefault(name(unit), []).append(unit)
        return {key: Units(units, self.seeds) for key, units in sorted(groups.items())}

    def mean(self, number: Callable[[Unit], float | None], *, share: bool = True) -> dict[str, Any]:
        """Return the mean of a number; units for which it is None are left out."""
        numbers = [(unit.last, number(unit)) for unit in self.units]
        values = [Value(float(n), one.task_id, one.seed) for one, n in numbers if n is not None]
        return mean_of(values, self.seeds, share=share)

    def success_and_score(self) -> dict[str, Any]:
        """Return the means `success` and `score`, and the `count` of units."""
        score = self.mean(lambda unit: unit.last.score)
        return {"success": self.mean(lambda u: u.success), "score": score, "count": len(self)}

    def samples(self) -> dict[str, Any]:
        """Return average success, pass@k and pass^k; a task has one sample for each seed.

        `n` is the largest number of samples of a task, `average` the mean success of all samples.
        `pass` and `all` have for each `k` up to n the mean `success` over tasks with at least k
        samples: one of k succeeds, or all k do. Intervals are those of `mean_of`, by drawing tasks.
        """
        tasks = self.grouped(lambda unit: unit.last.task_id)
        most = max(map(len, tasks.values()), default=0)
        return {
            "n": most,
            "average": self.mean(lambda unit: unit.success),
            "pass": [_of_draws(tasks, k, pass_at, self.seeds) for k in range(1, most + 1)],
            "all": [_of_draws(tasks, k, pass_all, self.seeds) for k in range(1, most + 1)],
        }


def _of_draws(
    tasks: Mapping[str, Units],
    k: int,
    chance: Callable[[int, int, int], float],
    seeds: Sequence[int],
) -> dict[str, Any]:
    """Return the mean chance of k draws from each task's samples, with `k`."""
    values = [
        Value(chance(len(units), sum(unit.success for unit in units), k), name, _ALL_SEEDS)
        for name, units in tasks.items()
        if len(units) >= k
    ]
    return {"k": k, "success": mean_of(values, seeds)}


def pass_at(count: int, won: int, k: int) -> float:
    """Return the probability that at least one of k of a task's n samples succeeded.

    1 - C(n - c, k) / C(n, k) for c successes, an unbiased estimate: Chen et al. 2021, equation 1.
    """
    return 1 - math.comb(count - won, k) / math.comb(count, k)


def pass_all(count: int, won: int, k: int) -> float:
    """Return the chance that all of k samples succeed: tau-bench's pass^k (arXiv:2406.12045)."""
    return math.comb(won, k) / math.comb(count, k)


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
