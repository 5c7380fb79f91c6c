"""Training runs, read from their folders, and which of their evaluations count."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from harness.config import without_seed
from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.figures import differences
from harness.evaluation.results import read_json
from harness.reporting.results import setting
from harness.types.errors import ResultError
from harness.types.rollout import StopReason

_Item = TypeVar("_Item")

_MEAN: Final = re.compile(r"last-([1-9]\d{0,3})")
FORMS: Final = "last, best, or last-N such as last-5"


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice among a run's evaluations, made on its validation split."""

    # `"last"`, `"best"` (GVPO, OPRL, SCPO's Fig. 6) or `"mean"` of the last (SALT's Table 1)
    kind: str = "last"
    count: int = 1  # number of evaluations whose mean counts

    @classmethod
    def parse(cls, text: str) -> Choice:
        """Return the choice that a text names; refuse a text that is none of `FORMS`."""
        if count := count_of_last(text):
            return cls("mean", count)
        if text in ("last", "best"):
            return cls(text)
        raise ResultError(f"--checkpoint must be {FORMS}, got {text!r:.60}")

    @property
    def name(self) -> str:
        """Its text."""
        return f"last-{self.count}" if self.kind == "mean" else self.kind

    def steps(self, evaluations: Sequence[Mapping[str, Any]], figure: str, run: str) -> list[int]:
        """Return the steps that count, in order; raise `ResultError` if there are too few.

        The evaluations are of the validation split, by step, at least one. The best one has the
        greatest `figure`, `"success"` or `"score"`; of equal ones the earlier counts. `run` names
        the run in the error.
        """
        if len(evaluations) < self.count:
            raise ResultError(
                f"{run} has {len(evaluations)} evaluations of {evaluations[0]['split']}, and "
                f"--checkpoint {self.name} needs {self.count}: expected a smaller number, or a "
                "longer run"
            )
        if self.kind != "best":
            return [int(e["step"]) for e in evaluations[-self.count :]]
        best = max(evaluations, key=lambda e: (float(e.get(figure, e["success"])), -int(e["step"])))
        return [int(best["step"])]


def count_of_last(text: str) -> int | None:
    """Return N of the text `last-N`, None of another one."""
    found = _MEAN.fullmatch(text)
    return int(found[1]) if found else None


LAST: Final = Choice()
"""The choice where nothing else is asked for."""


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

        Steps are chosen on the validation split. The result is empty if the split was not evaluated
        at all of them.
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
    _check_config(run)
    for file, evaluation in zip(files, run.evaluations, strict=True):
        _check(file, evaluation)
    return run


_MOST_TURNS: Final = 1_000_000
_SECTIONS: Final = ("env", "eval", "checkpoint", "agent", "rollout", "policy", "method", "run")


def _check_config(run: TrainingRun) -> None:
    """Read every setting that reports use, so that a missing or wrong one raises here."""
    try:
        texts, seed = (run.env_id, run.method), run.seed
        sections = [run.config.get(name, {}) for name in _SECTIONS]
        sections += [section.get("kwargs", {}) for section in sections]
        wrong = [section for section in sections if not isinstance(section, dict)]
        if wrong:
            raise TypeError(f"expected a section, got {wrong[0]!r:.40}")
        if not all(texts) or seed < 0:
            raise ValueError(f"environment, method and seed are {texts!r:.80} and {seed!r:.20}")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise ResultError(
            f"{run.folder}/config.json is damaged: {type(e).__name__}: {e!s:.100}"
        ) from None


def _check(file: Path, evaluation: Mapping[str, Any]) -> None:
    try:
        if type(evaluation["step"]) is not int or not isinstance(evaluation["split"], str):
            raise TypeError("step and split must be a whole number and a text")
        float(evaluation["success"]), float(evaluation["turns"])
        for name in ("interval", "score_interval"):
            low, high = evaluation[name]
            float(low), float(high)
        float(evaluation["score"])
        for won, count in evaluation["families"].values():
            int(won), int(count)
        records = [episode_record(e, i, 0, {}) for i, e in enumerate(finished(evaluation))]
        if not all(0 <= record.turns < _MOST_TURNS for record in records):
            raise ValueError(f"an episode has {_MOST_TURNS:,} turns or more, or less than none")
        dict(evaluation.get("parties", {}))
        wrong = differences(evaluation, _counted(evaluation, records))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise ResultError(f"{file} is damaged: {type(e).__name__}: {e}") from None
    if wrong:
        raise ResultError(f"{file} does not agree with its own episodes: {'; '.join(wrong)}")


def _counted(evaluation: Mapping[str, Any], played: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """Return success and score of an evaluation as its episodes have them."""
    families: dict[str, list[int]] = {}
    for one in played:
        won, count = families.get(one.family, [0, 0])
        families[one.family] = [won + one.success, count + 1]
    count = len(played)
    return {
        "success": sum(one.success for one in played) / count if count else math.nan,
        "score": math.fsum(one.score for one in played) / count if count else math.nan,
        "families": families,
        "missing": len(evaluation["episodes"]) - count,
    }


def group_by_settings(runs: Sequence[TrainingRun]) -> list[list[TrainingRun]]:
    """Return runs in groups that differ only in seed, name and folder, after the same steps."""

    def settings(run: TrainingRun) -> str:
        last = {split: run.last(split)["step"] for split in run.splits}
        return json.dumps([without_seed(run.config), last], sort_keys=True)

    def has_new_seed(run: TrainingRun, group: Sequence[TrainingRun]) -> bool:
        return all(known.seed != run.seed for known in group)

    return grouped(runs, settings, has_new_seed)


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
        stop_reason=StopReason(episode["stop_reason"]),
        metrics=metrics,
    )
