"""Groups evaluations that differ only in seeds: those of training, or their own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.evaluation.breakdowns import ALL
from harness.evaluation.statistics import mean_and_std
from harness.reporting.results.loading import LoadedEvaluation
from harness.reporting.results.training_runs import grouped
from harness.reporting.tables.columns import Column, inner
from harness.types.errors import ResultError


@dataclass(frozen=True, slots=True)
class SeedGroup:
    """One row of a table: an evaluation, or several that differ only in their seeds."""

    members: tuple[LoadedEvaluation, ...]  # the evaluations in the given order, at least one

    @property
    def first(self) -> LoadedEvaluation:
        """The first evaluation, for everything that all have in common."""
        return self.members[0]

    @property
    def label(self) -> str:
        """A short name."""
        several = len(self.members) > 1 and self.first.group is None
        return f"{self.first.label} ({len(self.members)} evaluations)" * several or self.first.label

    @property
    def training_seeds(self) -> list[int]:
        """Seeds of the training runs; empty if no training run's model was evaluated."""
        if "training" in self.first.result:
            return self._result_seeds
        return sorted({seed for one in self.members if (seed := _training_seed(one)) is not None})

    @property
    def _result_seeds(self) -> list[int]:
        return sorted({int(seed) for one in self.members for seed in one.result["seeds"]})

    @property
    def steps(self) -> list[int]:
        """Steps of training after which models were evaluated; empty if that is unknown."""
        return sorted({step for one in self.members for step in _steps(one)})

    @property
    def seeds(self) -> list[int]:
        """Seeds of the evaluations; empty for a training run's own evaluation."""
        return [] if "training" in self.first.result else self._result_seeds

    def episodes(self, name: str) -> int:
        """Return how many episodes were `planned`, `finished` or are `missing`."""
        return sum(int(one.result["episodes"][name]) for one in self.members)

    @property
    def incomplete_scenarios(self) -> int:
        """Number of AppWorld's scenarios with unfinished tasks, which SGC leaves out."""
        wholes = (inner(one.figures, ("breakdowns", "Difficulty", ALL)) for one in self.members)
        return sum(int((whole or {}).get("incomplete_scenarios", 0)) for whole in wholes)

    @property
    def unrated(self) -> int:
        """Number of SOTOPIA's episodes that ended before they could be rated."""
        breakdowns = [one.figures["breakdowns"].get("Goal", {}) for one in self.members]
        whole = [goals[ALL if ALL in goals else "Hard"] for goals in breakdowns if goals]
        return sum(int(group["count"]) - int(group["Mean"]["count"]) for group in whole)

    def mean(self, column: Column) -> dict[str, Any] | None:
        """Return a column's mean over all episodes in the form of `mean_of`; None if there is none.

        The deviation is over training seeds if there are several, else over the evaluations' seeds;
        over steps of one training run there is none. Several evaluations have no interval, because
        that needs their episodes, not only their means.
        """
        member_means = [(one, mean) for one in self.members if (mean := column.mean(one.figures))]
        if len(member_means) < 2:
            return member_means[0][1] if member_means else None
        per_seed = list(_by_training_seed(member_means).values())
        if len(per_seed) == 1 and self.first.over_steps == 1:
            per_seed = [m for _, mean in member_means for m in mean["per_seed"] if m is not None]
        return {
            "mean": _pooled([mean for _, mean in member_means]),
            "std": mean_and_std(per_seed)[1],
            "interval": None,
            "count": sum(mean["count"] for _, mean in member_means),
            "per_seed": per_seed,
        }

    def by_training_seed(self, column: Column) -> dict[int, float]:
        """Return a column's mean for each training seed; empty if no training run was evaluated."""
        means = [(one, mean) for one in self.members if (mean := column.mean(one.figures))]
        if len(means) == 1 and "training" in self.first.result:
            per_seed = zip(self.first.result["seeds"], means[0][1]["per_seed"], strict=True)
            return {int(seed): mean for seed, mean in per_seed if mean is not None}
        known = _by_training_seed(means).items()
        return {seed: mean for seed, mean in sorted(known, key=str) if seed is not None}


def _by_training_seed(
    member_means: Sequence[tuple[LoadedEvaluation, Mapping[str, Any]]],
) -> dict[int | None, float]:
    found: dict[int | None, list[Mapping[str, Any]]] = {}
    for one, mean in member_means:
        found.setdefault(_training_seed(one), []).append(mean)
    return {seed: _pooled(means) for seed, means in found.items()}


def group_by_seeds(evaluations: Sequence[LoadedEvaluation]) -> list[SeedGroup]:
    """Return evaluations in groups that differ only in seeds.

    Checkpoints of one step of training runs that differ only in their seed count as one model. So
    do their best ones, and those over whose steps a mean is taken. No episode counts twice:
    evaluations with one training seed, or of one model, have different seeds. A mean over more or
    fewer steps than a run has is a `ResultError`.
    """
    groups = [SeedGroup(tuple(group)) for group in grouped(evaluations, _settings, _fits)]
    for group in groups:
        steps: dict[int | None, set[int]] = {}
        for one in group.members:
            steps.setdefault(_training_seed(one), set()).update(_steps(one))
        for seed, found in steps.items():
            if len(found) != (wanted := group.first.over_steps) > 1:
                raise ResultError(
                    f"{group.first.label}: a mean over {wanted} steps needs evaluations of "
                    f"{wanted} checkpoints, and training seed {seed} has {len(found)}: play them "
                    f"with harness eval --model RUN --checkpoint last-{wanted}"
                )
    return groups


def _settings(one: LoadedEvaluation) -> str:
    """Return all settings but seeds as a key; a training run's own evaluation has its own key."""
    result = one.result
    if "training" in result:
        return f"training {one.group} {one.label}"
    config = {name: dict(of) for name, of in result["config"].items() if isinstance(of, Mapping)}
    model, chosen = dict(result["model"]), config.get("model", {})
    config.pop("service", None)
    left_out = [(config.get("run", {}), "name"), (config.get("run", {}), "seeds")]
    if model.get("trained"):
        model["trained"] = {k: v for k, v in model["trained"].items() if k != "seed"}
        left_out += [(part, name) for part in (model, chosen) for name in ("name", "revision")]
        if chosen.get("checkpoint") == "best" or one.over_steps > 1:
            left_out.append((model, "step"))
    for part, name in [*left_out, (chosen, "checkpoint")]:
        part.pop(name, None)
    names = ("environment", "agent", "sampling", "judge", "partner", "tasks")
    sections = [result.get(name) for name in names]
    return json.dumps([config, model, *sections], sort_keys=True)


def _fits(one: LoadedEvaluation, group: Sequence[LoadedEvaluation]) -> bool:
    if one.group is not None:
        return True
    return all(
        known.result["model"].get("revision") == one.result["model"].get("revision")
        and not set(known.result["seeds"]) & set(one.result["seeds"])
        for known in group
        if _training_seed(known) == _training_seed(one)
        and (one.over_steps == 1 or _steps(known) == _steps(one))
    )


def _training_seed(one: LoadedEvaluation) -> int | None:
    """Return the seed of the training run; None if there is none, or if there are several."""
    if "training" in one.result:
        seeds = one.result["seeds"]
        return int(seeds[0]) if len(seeds) == 1 else None
    trained = one.result["model"].get("trained")
    return int(trained["seed"]) if trained and "seed" in trained else None


def _steps(one: LoadedEvaluation) -> list[int]:
    if "training" in one.result:
        return list(one.result["training"]["steps"])
    step = one.result["model"].get("step")
    return [] if step is None else [int(step)]


def _pooled(means: Sequence[Mapping[str, Any]]) -> float:
    total = math.fsum(mean["mean"] * mean["count"] for mean in means)
    return total / math.fsum(mean["count"] for mean in means)
