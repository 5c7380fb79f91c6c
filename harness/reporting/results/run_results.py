"""Results of training runs in the form of `result.json`, at the evaluations that count."""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.evaluation.breakdowns import env_name
from harness.evaluation.figures import summarise
from harness.evaluation.results import without_addresses
from harness.reporting.results.training_runs import (
    LAST,
    Choice,
    TrainingRun,
    episode_record,
    finished,
)
from harness.types.rollout import StopReason

_log = logging.getLogger(__name__)

_UNKNOWN: Final = (
    *("failed_share", "unfinished_share", "cut_share", "tokens", "samples", "documentation"),
)
"""Figures that a training run does not record; its seeds are no samples of one model."""


def results(group: Sequence[TrainingRun], choice: Choice = LAST) -> Iterator[dict[str, Any]]:
    """Yield the evaluations that count of runs of one group, in the form of `result.json`.

    There is one for each split, of all runs together, or one for each run and step if the mean over
    steps counts. Splits that were not evaluated at the chosen steps are left out, with a warning.
    Too few evaluations are a `ResultError`.
    """
    runs = sorted(group, key=lambda run: run.seed)
    for split in group[0].splits:
        chosen = [run.chosen(split, choice) for run in runs]
        if not all(chosen):
            run = runs[0]
            steps = ", ".join(str(e["step"]) for e in run.on_split(split))
            _log.warning(
                f"{split} is left out: {run.folder} evaluated it at the steps {steps} alone; "
                f"evaluate its checkpoints with: harness eval --model "
                f"{shlex.quote(str(run.folder))} --env {run.env_id} --checkpoint {choice.name} "
                f"--split {split}"
            )
        elif choice.kind == "mean":
            for run, evaluations in zip(runs, chosen, strict=True):
                yield from (_result([run], split, {run.seed: e}) for e in evaluations)
        else:
            counted = {run.seed: found[0] for run, found in zip(runs, chosen, strict=True)}
            yield _result(runs, split, counted)


def _result(
    group: Sequence[TrainingRun], split: str, last: Mapping[int, dict[str, Any]]
) -> dict[str, Any]:
    first = group[0]
    episodes = [episode for e in last.values() for episode in e["episodes"]]
    families = {str(episode["task_id"]): str(episode.get("family", "")) for episode in episodes}
    place = {task_id: index for index, task_id in enumerate(sorted(families))}
    records = [
        episode_record(
            episode, place[str(episode["task_id"])], seed, _metrics(episode, first.env_id, split)
        )
        for seed, evaluation in last.items()
        for episode in finished(evaluation)
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
        "data_source": last[first.seed].get("data_source"),
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


def _metrics(episode: Mapping[str, Any], env_id: str, split: str) -> dict[str, float]:
    """Return an episode's metrics: SOTOPIA's goal, ten times the score, nan if it was not rated."""
    if env_name(env_id) != "SOTOPIA":
        return {}
    rated = episode["stop_reason"] != StopReason.CONTEXT_LIMIT
    goal = 10 * float(episode["score"]) if rated else math.nan
    return {"goal": goal, "hard": float(split == "hard")}


def _invalid_share(evaluations: Sequence[Mapping[str, Any]]) -> float | None:
    shares = [
        (one.get("invalid_share"), sum(int(e["turns"]) for e in finished(one)))
        for one in evaluations
    ]
    known = [(share, n) for share, n in shares if n and isinstance(share, int | float)]
    turns = sum(n for _, n in known)
    return sum(share * n for share, n in known) / turns if turns else None
