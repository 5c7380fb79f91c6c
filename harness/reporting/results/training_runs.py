"""Reads folders of training runs in the form of `result.json`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from harness.config import without_seed
from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.results import read_json
from harness.evaluation.verify_result import differences
from harness.reporting.results import setting
from harness.reporting.results.choice import LAST, Choice
from harness.types.errors import ResultError
from harness.types.rollout import StopReason, Usage

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A training run, read from its folder."""

    folder: Path
    config: dict[str, Any]  # the content of its `config.json`
    evaluations: list[dict[str, Any]]  # the evaluations in `evaluations/`, by step

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.config["run"]["seed"])

    @property
    def env_id(self) -> str:
        """The environment's id."""
        return str(self.config["env"]["id"])

    @property
    def world(self) -> str:
        """The world of its evaluations, with the words that must stand beside generated tasks."""
        env, played = self.config["env"], self.config.get("eval", {})
        kwargs = {**env.get("kwargs", {}), **played.get("kwargs", {})}
        recorded = self.evaluations[-1].get("data_source") if self.evaluations else None
        data = setting.data_source(self.env_id, kwargs, recorded)
        return setting.Setting(self.env_id, "", data=data).title

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.config["method"]["name"])

    @property
    def splits(self) -> list[str]:
        """The evaluated splits, the validation split first."""
        first = self.config.get("eval", {}).get("split")
        found = dict.fromkeys(str(e["split"]) for e in self.evaluations)
        return sorted(found, key=lambda split: split != first)

    def on_split(self, split: str) -> list[dict[str, Any]]:
        """Return the evaluations of a split, by step."""
        found = [e for e in self.evaluations if e["split"] == split]
        return sorted(found, key=lambda e: int(e["step"]))

    def last(self, split: str) -> dict[str, Any]:
        """Return the last evaluation of a split."""
        return self.on_split(split)[-1]

    def chosen(self, split: str, choice: Choice = LAST) -> list[dict[str, Any]]:
        """Return the evaluations of a split that count, by step; too few are a `ResultError`.

        Steps are chosen on the validation split. The result is empty if the split was not
        evaluated at all of them.
        """
        if choice == LAST:
            return [self.last(split)]
        figure = self.config.get("checkpoint", {}).get("best", "success")
        steps = choice.steps(self.on_split(self.splits[0]), figure, str(self.folder))
        found = [e for e in self.on_split(split) if int(e["step"]) in steps]
        return found if len(found) == len(steps) else []


def is_run(path: Path) -> bool:
    """Return whether a folder holds a training run."""
    return (path / "evaluations").is_dir()


def read(folder: Path) -> TrainingRun:
    """Return a training run; one that is damaged or has no evaluation is a `ResultError`."""
    config = read_json(folder / "config.json")
    if not all(isinstance(config.get(name), dict) for name in ("run", "env", "method", "policy")):
        raise ResultError(f"{folder}/config.json is not a training run's configuration")
    files = sorted((folder / "evaluations").glob("step-*.json"))
    if not files:
        raise ResultError(f"{folder} has no evaluation yet")
    run = TrainingRun(folder, config, [read_json(file) for file in files])
    for file, evaluation in zip(files, run.evaluations, strict=True):
        _check(file, evaluation)
    return run


def _check(file: Path, evaluation: Mapping[str, Any]) -> None:
    try:
        int(evaluation["step"]), str(evaluation["split"])
        float(evaluation["success"]), float(evaluation["turns"])
        low, high = evaluation["interval"]
        float(low), float(high)
        for won, count in evaluation["families"].values():
            int(won), int(count)
        for number, episode in enumerate(finished(evaluation)):
            episode_record(episode, number, 0, {})
        dict(evaluation.get("parties", {}))
        wrong = differences(evaluation, _counted(evaluation))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise ResultError(f"{file} is damaged: {type(e).__name__}: {e}") from None
    if wrong:
        raise ResultError(f"{file} does not agree with its own episodes: {'; '.join(wrong)}")


def _counted(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Return success and score of an evaluation as its episodes have them."""
    played = finished(evaluation)
    families: dict[str, list[int]] = {}
    for episode in played:
        won, count = families.get(episode["family"], [0, 0])
        families[episode["family"]] = [won + bool(episode["success"]), count + 1]
    success = sum(bool(episode["success"]) for episode in played)
    score = math.fsum(float(episode["score"]) for episode in played)
    count = len(played)
    return {
        "success": success / count if count else math.nan,
        "score": score / count if count else math.nan,
        "families": families,
        "missing": len(evaluation["episodes"]) - count,
    }


def group_by_settings(runs: Sequence[TrainingRun]) -> list[list[TrainingRun]]:
    """Return runs in groups that differ only in seed, name and folder.

    Runs of one group were last evaluated after the same steps and have different seeds.
    """

    def has_new_seed(run: TrainingRun, group: Sequence[TrainingRun]) -> bool:
        return all(known.seed != run.seed for known in group)

    return grouped(runs, _settings, has_new_seed)


def group_name(group: Sequence[TrainingRun]) -> str:
    """Return a name of runs that differ only in their seeds: the first one's, without its seed."""
    name = group[0].folder.resolve().name
    return name.removesuffix(f"-seed{group[0].seed}") if len(group) > 1 else name


def grouped(
    items: Sequence[_Item], key: Callable[[_Item], str], fits: Callable[[_Item, list[_Item]], bool]
) -> list[list[_Item]]:
    """Return items in groups of one key; an item goes into the first group that it fits into.

    Groups stand in the order of their first items; `fits` must be true for an empty group.
    """
    groups: dict[tuple[str, int], list[_Item]] = {}
    for item in items:
        name, number = key(item), 0
        while not fits(item, groups.get((name, number), [])):
            number += 1
        groups.setdefault((name, number), []).append(item)
    return list(groups.values())


def _settings(run: TrainingRun) -> str:
    last = {split: run.last(split)["step"] for split in run.splits}
    return json.dumps([without_seed(run.config), last], sort_keys=True)


def finished(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the finished episodes of an evaluation, as its file has them."""
    return [episode for episode in evaluation["episodes"] if not episode.get("error")]


def episode_record(
    episode: Mapping[str, Any], index: int, seed: int, metrics: dict[str, float]
) -> EpisodeRecord:
    """Return the record of an episode of a run's evaluation; what runs do not keep is zero."""
    return EpisodeRecord(
        task_id=str(episode["task_id"]),
        index=index,
        seed=seed,
        trial=1,
        family=str(episode["family"]),
        success=bool(episode["success"]),
        score=float(episode["score"]),
        turns=int(episode["turns"]),
        invalid=0,
        failed=0,
        unfinished=0,
        cut=0,
        stop_reason=StopReason(episode["stop_reason"]),
        usage=Usage(),
        metrics=metrics,
    )
