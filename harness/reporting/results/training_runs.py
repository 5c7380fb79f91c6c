"""Reads folders of training runs, also of earlier versions, in the form of `result.json`."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from harness.config import without_seed
from harness.evaluation.breakdowns import env_name
from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.figures import summarise
from harness.evaluation.recount import differences
from harness.evaluation.results import read_json, without_addresses
from harness.reporting.results.choice import LAST, Choice
from harness.types.errors import ResultError
from harness.types.rollout import StopReason, Usage

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")

_UNKNOWN: Final = ("failed_share", "unfinished_share", "cut_share", "tokens")
"""Figures that a training run does not record."""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A training run, read from its folder.

    Attributes:
        folder: The run's folder.
        config: The content of its `config.json`.
        evaluations: The evaluations in `evaluations/`, by step.
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
        """The evaluated splits, the validation split first."""
        first = self.config.get("eval", {}).get("split")
        found = dict.fromkeys(str(e["split"]) for e in self.evaluations)
        return sorted(found, key=lambda split: split != first)

    def of_split(self, split: str) -> list[dict[str, Any]]:
        """Return the evaluations of a split, by step."""
        found = [e for e in self.evaluations if e["split"] == split]
        return sorted(found, key=lambda e: int(e["step"]))

    def last(self, split: str) -> dict[str, Any]:
        """Return the last evaluation of a split."""
        return self.of_split(split)[-1]

    def chosen(self, split: str, choice: Choice = LAST) -> list[dict[str, Any]]:
        """Return the evaluations of a split that count, by step.

        Steps are chosen on the validation split. The result is empty if the split was not evaluated
        at all of them.

        Raises:
            ResultError: There are too few evaluations.
        """
        if choice == LAST:
            return [self.last(split)]
        figure = self.config.get("checkpoint", {}).get("best", "success")
        steps = choice.steps(self.of_split(self.splits[0]), figure, str(self.folder))
        found = [e for e in self.of_split(split) if int(e["step"]) in steps]
        return found if len(found) == len(steps) else []


def is_run(path: Path) -> bool:
    """Return whether a folder holds a training run."""
    return (path / "evaluations").is_dir()


def read(folder: Path) -> TrainingRun:
    """Return a training run.

    Raises:
        ResultError: A file is missing or damaged, or there is no evaluation yet.
    """
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
        for number, episode in enumerate(_finished(evaluation)):
            _episode(episode, number, 0, {})
        dict(evaluation.get("parties", {}))
        wrong = differences(evaluation, _counted(evaluation))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise ResultError(f"{file} is damaged: {type(e).__name__}: {e}") from None
    if wrong:
        raise ResultError(f"{file} does not agree with its own episodes: {'; '.join(wrong)}")


def _counted(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Return success and score of an evaluation as its episodes have them."""
    played = _finished(evaluation)
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
    """Return the name of runs that differ only in their seeds: the first one's, without its seed."""
    name = group[0].folder.resolve().name
    return name.removesuffix(f"-seed{group[0].seed}") if len(group) > 1 else name


def grouped(
    items: Sequence[_Item], key: Callable[[_Item], str], fits: Callable[[_Item, list[_Item]], bool]
) -> list[list[_Item]]:
    """Return items in groups of one key; an item goes into the first group that it fits into.

    Args:
        items: What is grouped; groups stand in the order of their first items.
        key: Equal for all items of a group.
        fits: Whether an item may join a group; it must be true for an empty group.
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


def results(group: Sequence[TrainingRun], choice: Choice = LAST) -> Iterator[dict[str, Any]]:
    """Yield the evaluations that count, in the form of `result.json`.

    There is one for each split, of all runs together; if the mean over several steps counts, one
    for each run and step. Splits that were not evaluated at the chosen steps are left out, with a
    warning.

    Args:
        group: Runs that differ only in their seeds; see `group_by_settings`.
        choice: Which evaluations of a run count.

    Raises:
        ResultError: A run has too few evaluations.
    """
    runs = sorted(group, key=lambda run: run.seed)
    for split in group[0].splits:
        chosen = [run.chosen(split, choice) for run in runs]
        if not all(chosen):
            _log.warning(_not_evaluated(runs[0], split, choice))
        elif choice.kind == "mean":
            for run, evaluations in zip(runs, chosen, strict=True):
                yield from (_result([run], split, {run.seed: e}) for e in evaluations)
        else:
            counted = {run.seed: found[0] for run, found in zip(runs, chosen, strict=True)}
            yield _result(runs, split, counted)


def _not_evaluated(run: TrainingRun, split: str, choice: Choice) -> str:
    steps = ", ".join(str(e["step"]) for e in run.of_split(split))
    return (
        f"{split} is left out: {run.folder} evaluated it at the steps {steps} alone; evaluate its "
        f"checkpoints with: harness eval --model {run.folder} --checkpoint {choice.name} --split "
        f"{split}"
    )


def _result(
    group: Sequence[TrainingRun], split: str, last: Mapping[int, dict[str, Any]]
) -> dict[str, Any]:
    first = group[0]
    episodes = [episode for e in last.values() for episode in e["episodes"]]
    families = {str(episode["task_id"]): str(episode.get("family", "")) for episode in episodes}
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
    env, evaluation_config = first.config["env"], first.config.get("eval", {})
    kwargs = {**env.get("kwargs", {}), **evaluation_config.get("kwargs", {})}
    limit = evaluation_config.get("max_turns")
    parties = last[first.seed].get("parties", {})
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
        "training": {
            "steps": [int(last[seed]["step"]) for seed in seeds],
            "runs": [run.folder.name for run in group],
        },
        "partner": parties.get("partner"),
        "judge": parties.get("judge"),
        "seeds": seeds,
        "episodes": {"planned": len(episodes), "finished": len(records), "missing": len(missing)},
        "missing": missing,
        "figures": figures,
        "tasks": [[task_id, families[task_id]] for task_id in place],
        "outcomes": [
            [r.index, r.seed, r.trial, r.success, r.score, r.turns]
            for r in sorted(records, key=lambda r: r.order)
        ],
    }


def _finished(evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [episode for episode in evaluation["episodes"] if not episode.get("error")]


def _metrics(episode: Mapping[str, Any], env_id: str, split: str) -> dict[str, float]:
    """Return the metrics of an episode that follow from its record; runs keep no metrics.

    SOTOPIA's goal is ten times the score; it is nan if the context ended before the rating.
    """
    if env_name(env_id) != "SOTOPIA":
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
    """Return the share of invalid turns over the turns of all evaluations."""
    counts = [sum(int(e["turns"]) for e in _finished(evaluation)) for evaluation in evaluations]
    shares = [
        (evaluation["invalid_share"], count)
        for evaluation, count in zip(evaluations, counts, strict=True)
        if count and isinstance(evaluation.get("invalid_share"), int | float)
    ]
    turns = sum(count for _, count in shares)
    return sum(share * count for share, count in shares) / turns if turns else None
