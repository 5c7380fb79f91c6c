"""Reads folders of training runs, old ones too, and puts their evaluations into the common form."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import ResultError
from harness.evaluation.breakdowns import name_of
from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.figures import summarise
from harness.evaluation.results import without_addresses
from harness.rollout import StopReason, Usage
from harness.sections import without_seed

_UNKNOWN: Final = ("failed_share", "unfinished_share", "cut_share", "tokens")
"""Figures that a training run does not keep."""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A training run as its folder tells it.

    Attributes:
        folder: The folder.
        config: Its `config.json`, as it was written.
        evaluations: Those in `evaluations/`, by step.
    """

    folder: Path
    config: dict[str, Any]
    evaluations: list[dict[str, Any]]

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.config["run"]["seed"])

    @property
    def env_id(self) -> str:
        """The environment's id."""
        return str(self.config["env"]["id"])

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.config["method"]["name"])

    @property
    def splits(self) -> list[str]:
        """Splits that were evaluated, that of validation first."""
        first = self.config.get("eval", {}).get("split")
        found = dict.fromkeys(str(e["split"]) for e in self.evaluations)
        return sorted(found, key=lambda split: split != first)

    def last(self, split: str) -> dict[str, Any]:
        """Return the last evaluation of a split."""
        return [e for e in self.evaluations if e["split"] == split][-1]


def is_run(path: Path) -> bool:
    """Return whether a folder is a training run's."""
    return (path / "evaluations").is_dir()


def read(folder: Path) -> TrainingRun:
    """Return a training run.

    Raises:
        ResultError: A file is missing or damaged, or there is no evaluation yet.
    """
    config = read_object(folder / "config.json")
    if not all(isinstance(config.get(name), dict) for name in ("run", "env", "method", "policy")):
        raise ResultError(f"{folder}/config.json is not a training run's configuration")
    files = sorted((folder / "evaluations").glob("step-*.json"))
    if not files:
        raise ResultError(f"{folder} has no evaluation yet")
    run = TrainingRun(folder, config, [read_object(file) for file in files])
    for file, evaluation in zip(files, run.evaluations, strict=True):
        _check(file, evaluation)
    return run


def read_object(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        ResultError: There is no such file, or it holds something else.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultError(f"{file} does not exist") from None
    except OSError as e:
        raise ResultError(f"{file} cannot be read: {e.strerror}") from None
    except ValueError as e:
        raise ResultError(f"{file} is damaged: {e}") from None
    if not isinstance(value, dict):
        raise ResultError(f"{file} is damaged: expected a JSON object")
    return value


def _check(file: Path, evaluation: Mapping[str, Any]) -> None:
    try:
        int(evaluation["step"]), str(evaluation["split"])
        float(evaluation["success"]), float(evaluation["turns"])
        low, high = evaluation["interval"]
        float(low), float(high)
        for won, count in evaluation["families"].values():
            int(won), int(count)
        for number, episode in enumerate(_finished(evaluation)):
            _episode(episode, number, 0, {})
        dict(evaluation.get("parties", {}))
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise ResultError(f"{file} is damaged: {type(e).__name__}: {e}") from None


def by_settings(runs: Sequence[TrainingRun]) -> list[list[TrainingRun]]:
    """Return runs in groups: those that differ in nothing but seed, name and place.

    Runs of one group have been evaluated after the same steps, and no two have one seed.
    """
    groups: dict[str, list[TrainingRun]] = {}
    for run in runs:
        key, number = _settings(run), 0
        while any(known.seed == run.seed for known in groups.get(f"{number} {key}", [])):
            number += 1
        groups.setdefault(f"{number} {key}", []).append(run)
    return list(groups.values())


def _settings(run: TrainingRun) -> str:
    last = {split: run.last(split)["step"] for split in run.splits}
    return json.dumps([without_seed(run.config), last], sort_keys=True)


def results(group: Sequence[TrainingRun]) -> Iterator[dict[str, Any]]:
    """Yield the last evaluation of each split, in the form of `result.json`.

    Args:
        group: Runs that differ in nothing but their seeds; see `by_settings`.
    """
    for split in group[0].splits:
        yield _result(sorted(group, key=lambda run: run.seed), split)


def _result(group: Sequence[TrainingRun], split: str) -> dict[str, Any]:
    first, last = group[0], {run.seed: run.last(split) for run in group}
    every = [episode for e in last.values() for episode in e["episodes"]]
    families = {str(episode["task_id"]): str(episode.get("family", "")) for episode in every}
    place = {task_id: index for index, task_id in enumerate(sorted(families))}
    records = [
        _episode(episode, place[episode["task_id"]], seed, _metrics(episode, first.env_id, split))
        for seed, evaluation in last.items()
        for episode in _finished(evaluation)
    ]
    seeds = sorted(last)
    figures = summarise(records, env_id=first.env_id, seeds=seeds, trials=1, prices=None)
    figures |= dict.fromkeys(_UNKNOWN) | {"invalid_share": _invalid_share(list(last.values()))}
    missing = [
        {"task_id": e["task_id"], "seed": seed, "trial": 1, "error": e["error"]}
        for seed, evaluation in last.items()
        for e in evaluation["episodes"]
        if e.get("error")
    ]
    env, own = first.config["env"], first.config.get("eval", {})
    kwargs = {**env.get("kwargs", {}), **own.get("kwargs", {})}
    limit = own.get("max_turns")
    parties = first.last(split).get("parties", {})
    return {
        "config": first.config,
        "environment": {
            "id": first.env_id,
            "split": split,
            "kwargs": without_addresses(kwargs),
            "max_turns": env.get("max_turns") if limit is None else limit,
            "data_version": None,
            "tasks": len(place),
        },
        "agent": {**first.config.get("agent", {}), "kind": "trained"},
        "model": {"name": first.config["policy"].get("model"), "method": first.method},
        "training": {"step": last[seeds[0]]["step"], "runs": [run.folder.name for run in group]},
        "partner": parties.get("partner"),
        "judge": parties.get("judge"),
        "seeds": seeds,
        "episodes": {"planned": len(every), "finished": len(records), "missing": len(missing)},
        "missing": missing,
        "figures": figures,
        "tasks": [[task_id, families[task_id]] for task_id in place],
        "outcomes": [
            [r.index, r.seed, r.trial, r.success, r.score, r.turns]
            for r in sorted(records, key=lambda r: r.place)
        ],
    }


def _finished(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [episode for episode in evaluation["episodes"] if not episode.get("error")]


def _metrics(episode: Mapping[str, Any], env_id: str, split: str) -> dict[str, float]:
    """Return what is known of an episode's metrics, of which runs keep none.

    SOTOPIA's goal is ten times the score, but where the agent's context ended before a rating.
    """
    if name_of(env_id) != "SOTOPIA":
        return {}
    rated = episode["stop_reason"] != StopReason.CONTEXT_LIMIT
    goal = 10 * float(episode["score"]) if rated else math.nan
    return {"goal": goal, "hard": float(split == "hard")}


def _episode(
    episode: Mapping[str, Any], index: int, seed: int, metrics: dict[str, float]
) -> EpisodeRecord:
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


def _invalid_share(evaluations: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the share of all turns; each evaluation tells that of its own."""
    counts = [sum(int(e["turns"]) for e in _finished(evaluation)) for evaluation in evaluations]
    told = [
        (evaluation["invalid_share"], count)
        for evaluation, count in zip(evaluations, counts, strict=True)
        if count and isinstance(evaluation.get("invalid_share"), int | float)
    ]
    turns = sum(count for _, count in told)
    return sum(share * count for share, count in told) / turns if turns else None
