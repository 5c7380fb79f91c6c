"""Puts evaluations together that differ in nothing but seeds: of the training, or their own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.evaluation.breakdowns import ALL
from harness.evaluation.statistics import mean_and_std
from harness.reporting.columns import Column
from harness.reporting.loading import Evaluated


@dataclass(frozen=True, slots=True)
class Repeated:
    """One row of a table: an evaluation, or several that differ in their seeds alone.

    Attributes:
        members: In the order they were given, at least one.
    """

    members: tuple[Evaluated, ...]

    @property
    def first(self) -> Evaluated:
        """What tells all that they have in common."""
        return self.members[0]

    @property
    def label(self) -> str:
        """A short name."""
        several = f" ({len(self.members)} evaluations)" if self.members[1:] else ""
        return self.first.label + several

    @property
    def training_seeds(self) -> list[int]:
        """Seeds of the training runs; none where no checkpoint of a run was evaluated."""
        if "training" in self.first.result:
            return list(self.first.result["seeds"])
        return sorted({seed for one in self.members if (seed := _training_seed(one)) is not None})

    @property
    def seeds(self) -> list[int]:
        """Seeds of the evaluations; none of a training run's own, which has but one for all."""
        if "training" in self.first.result:
            return []
        return sorted({int(seed) for one in self.members for seed in one.result["seeds"]})

    def episodes(self, name: str) -> int:
        """Return how many episodes were `planned`, `finished` or are `missing`."""
        return sum(int(one.result["episodes"][name]) for one in self.members)

    @property
    def incomplete_scenarios(self) -> int:
        """How many of AppWorld's scenarios were not finished whole, which SGC leaves out."""
        told = [one.figures["breakdowns"].get("Difficulty", {}) for one in self.members]
        return sum(int(of.get(ALL, {}).get("incomplete_scenarios", 0)) for of in told)

    @property
    def unrated(self) -> int:
        """How many episodes of SOTOPIA ended before anybody could rate them."""
        told = [one.figures["breakdowns"].get("Goal", {}) for one in self.members]
        whole = [goals[ALL if ALL in goals else "Hard"] for goals in told if goals]
        return sum(int(of["count"]) - int(of["Mean"]["count"]) for of in whole)

    def mean(self, column: Column) -> dict[str, Any] | None:
        """Return the mean of a column over all episodes, as `mean_of` does, None if there is none.

        The deviation of several evaluations is over seeds of training where these are several, each
        with the mean of its own evaluations, else over the evaluations' seeds. There is no
        interval of several evaluations: that takes their episodes, not their means.
        """
        told = [(one, mean) for one in self.members if (mean := column.mean(one.figures))]
        if len(told) < 2:
            return told[0][1] if told else None
        by_training: dict[int | None, list[Mapping[str, Any]]] = {}
        for one, mean in told:
            by_training.setdefault(_training_seed(one), []).append(mean)
        per_seed = [_pooled(means) for means in by_training.values()]
        if len(per_seed) == 1:
            per_seed = [m for _, mean in told for m in mean["per_seed"] if m is not None]
        return {
            "mean": _pooled([mean for _, mean in told]),
            "std": mean_and_std(per_seed)[1],
            "interval": None,
            "count": sum(mean["count"] for _, mean in told),
            "per_seed": per_seed,
        }


def by_seeds(evaluations: Sequence[Evaluated]) -> list[Repeated]:
    """Return evaluations in groups: those that differ in nothing but seeds.

    Checkpoints of one step of training runs that differ in their seed alone are one model. No
    episode counts twice: of evaluations with the same seed of training, or of one model, none has a
    seed that another has.
    """
    groups: dict[str, list[Evaluated]] = {}
    for one in evaluations:
        key, number = _settings(one), 0
        while not _fits(one, groups.get(f"{number} {key}", ())):
            number += 1
        groups.setdefault(f"{number} {key}", []).append(one)
    return [Repeated(tuple(group)) for group in groups.values()]


def _settings(one: Evaluated) -> str:
    """Return all that decides an evaluation's numbers but seeds; runs of training are on their own.

    Runs that differ in their seeds alone are one already, when they are loaded.
    """
    result = one.result
    if "training" in result:
        return f"training {one.label}"
    config = {name: dict(of) for name, of in result["config"].items() if isinstance(of, Mapping)}
    config.pop("service", None)
    for name in ("name", "seeds"):
        config.get("run", {}).pop(name, None)
    model = dict(result["model"])
    if model.get("trained"):
        model["trained"] = {k: v for k, v in model["trained"].items() if k != "seed"}
        for name in ("name", "revision"):
            model.pop(name, None)
            config.get("model", {}).pop(name, None)
    names = ("environment", "agent", "sampling", "judge", "partner", "tasks")
    told = [result.get(name) for name in names]
    return json.dumps([config, model, *told], sort_keys=True)


def _fits(one: Evaluated, group: Sequence[Evaluated]) -> bool:
    of_same_training = [known for known in group if _training_seed(known) == _training_seed(one)]
    return all(
        known.result["model"].get("revision") == one.result["model"].get("revision")
        and not set(known.result["seeds"]) & set(one.result["seeds"])
        for known in of_same_training
    )


def _training_seed(one: Evaluated) -> int | None:
    trained = one.result["model"].get("trained")
    return int(trained["seed"]) if trained and "seed" in trained else None


def _pooled(means: Sequence[Mapping[str, Any]]) -> float:
    total = math.fsum(mean["mean"] * mean["count"] for mean in means)
    return total / math.fsum(mean["count"] for mean in means)
