"""All figures of an evaluation, counted from its episodes; those of a `result.json` again."""

from __future__ import annotations

import json
import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.data.manifests import digest_file
from harness.credit.table import LOOKUPS
from harness.evaluation import breakdowns
from harness.evaluation import episodes as recorded
from harness.evaluation.episode_store import RECORDINGS
from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.statistics import mean_and_std
from harness.evaluation.units import Units
from harness.types.rollout import Usage

_SPENT: Final = {
    "prompt": "model_prompt_tokens",
    "response": "model_response_tokens",
    "calls": "model_calls",
}
"""Token counts of partners and judges, and the metrics that hold them."""
_SHARES: Final = ("invalid", "failed", "unfinished", "cut")
"""Counts of turns that are shown as shares of all turns."""


def summarise(
    episodes: Sequence[EpisodeRecord],
    *,
    env_id: str,
    seeds: Sequence[int],
    trials: int,
    prices: tuple[float, float] | None,
) -> dict[str, Any]:
    """Return the figures of an evaluation as plain JSON values; unknown ones are None.

    A task played with one seed counts once, whatever its number of trials: it is solved if any
    trial solved it, and has the score of the last trial. Turns, shares of turns, stop reasons,
    tokens and cost count all trials. `env_id` decides the breakdowns, `trials` is the maximum per
    task, `prices` are those of a million prompt tokens and of a million response tokens.

    - `success`, `score`: see `harness.evaluation.units.mean_of`.
    - `turns`: mean number of turns per episode; each trial is an episode.
    - `invalid_share`, `failed_share`, `unfinished_share`, `cut_share`: of all turns.
    - `stop_reasons`: number of episodes by reason.
    - `tokens`: total of `prompt`, `response` and `calls`; `cost`: their cost by `prices`.
    - `costs`: mean environment `steps` and `tokens` of a task with a seed, with all trials and
      search.
    - `thoughts`, if known: mean `tokens` of a turn's thought, the `longest`, and `cut_share`, the
      share of turns whose thought reached its limit or has no end.
    - `parties`: total `tokens` and `cost` of partner and judge, from the environment's metrics;
      None if no model took part.
    - `families`: `success`, `score` and `count` of each, in the papers' order.
    - `breakdowns`: tables of this environment; see `harness.evaluation.breakdowns`.
    - `metrics`: mean of each of the environment's metrics over the units that have it;
      `metric_counts`: the number of these units.
    - `trials`: success within the first, the first two, ... trials.
    - `samples`: average success, pass@k and pass^k, if there are several seeds; see
      `Units.samples`.
    - `documentation`: only for AppWorld: for each of `LOOKUPS` the mean number of turns per episode
      that call it (`calls`) and their share of all turns (`share`).
    """
    units = Units.collect(episodes, seeds)
    usage = sum((episode.usage for episode in episodes), Usage())
    families = units.grouped(lambda unit: unit.last.family)
    overall = units.success_and_score()
    paid = usage.prompt, usage.response
    return {
        "success": overall["success"],
        "score": overall["score"],
        "turns": mean_and_std([episode.turns for episode in episodes])[0],
        **_turn_shares(episodes),
        "stop_reasons": dict(sorted(Counter(e.stop_reason.value for e in episodes).items())),
        "tokens": {"prompt": usage.prompt, "response": usage.response, "calls": usage.calls},
        "cost": sum(map(operator.mul, paid, prices)) / 1e6 if prices else None,
        "costs": {
            "steps": units.mean(lambda unit: sum(e.steps for e in unit.trials), share=False),
            "tokens": units.mean(
                lambda unit: sum(e.usage.prompt + e.usage.response for e in unit.trials),
                share=False,
            ),
        },
        **_thoughts(episodes),
        "parties": _parties(episodes),
        "families": {n: families[n].success_and_score() for n in breakdowns.in_order(families)},
        "breakdowns": breakdowns.breakdowns_of(env_id, units),
        **_metrics(units),
        "trials": [
            {
                "trial": n,
                "success": units.mean(lambda unit, n=n: any(e.success for e in unit.trials[:n])),  # type: ignore[misc]
            }
            for n in range(1, trials + 1)
        ],
        **({"samples": units.samples()} if len(seeds) > 1 else {}),
        **_lookups(episodes, env_id),
    }


def _lookups(episodes: Sequence[EpisodeRecord], env_id: str) -> dict[str, Any]:
    if breakdowns.env_name(env_id) != "AppWorld":
        return {}
    turns = sum(episode.turns for episode in episodes)
    counts = {name: sum(e.lookups.get(name, 0) for e in episodes) for name in LOOKUPS}
    return {
        "documentation": {
            name: {
                "calls": count / len(episodes) if episodes else None,
                "share": count / turns if turns else None,
            }
            for name, count in counts.items()
        }
    }


def _thoughts(episodes: Sequence[EpisodeRecord]) -> dict[str, dict[str, float]]:
    lengths = [length for episode in episodes for length in episode.thoughts]
    if not any(lengths):
        return {}
    cut = sum(episode.cut_thoughts for episode in episodes)
    share = cut / sum(episode.turns for episode in episodes)
    mean = sum(lengths) / len(lengths)
    return {"thoughts": {"tokens": mean, "longest": max(lengths), "cut_share": share}}


def _parties(episodes: Sequence[EpisodeRecord]) -> dict[str, Any] | None:
    """Return tokens and cost of partners and judges; the cost is None if a price is unknown."""
    metrics = [episode.metrics for episode in episodes if episode.metrics.get("model_calls")]
    if not metrics:
        return None
    tokens = {name: round(math.fsum(m[metric] for m in metrics)) for name, metric in _SPENT.items()}
    cost = math.fsum(m.get("cost", math.nan) for m in metrics)
    return {"tokens": tokens, "cost": None if math.isnan(cost) else cost}


def _turn_shares(episodes: Sequence[EpisodeRecord]) -> dict[str, float | None]:
    turns = sum(episode.turns for episode in episodes)
    counts = {n: sum(getattr(e, n) for e in episodes) for n in _SHARES}
    return {f"{name}_share": count / turns if turns else None for name, count in counts.items()}


def _metrics(units: Units) -> dict[str, dict[str, Any]]:
    names = sorted({name for unit in units for name in unit.last.metrics})
    values_by_name = {n: [v for unit in units if (v := unit.metric(n)) is not None] for n in names}
    return {
        "metrics": {name: mean_and_std(values)[0] for name, values in values_by_name.items()},
        "metric_counts": {name: len(values) for name, values in values_by_name.items()},
    }


_SHOWN: Final = 3
_OUTCOME_FIGURES: Final = ("success", "score", "turns", "families", "trials", "samples")
"""Figures that follow from the outcomes alone."""


def check(folder: Path, result: Mapping[str, Any]) -> str:
    """Return the first disagreement of a `result.json` with its evaluation, "" if there is none.

    The figures are counted again from the recordings, or from the result's outcomes if the folder
    holds no recordings. Raises `DataCorrupt` if the recordings are damaged.
    """
    if result["recordings"]["file"] != RECORDINGS:
        return f"its recordings are {result['recordings']['file']!r:.60}, expected {RECORDINGS!r}"
    recordings = folder / RECORDINGS
    if recordings.is_dir():
        return f"{recordings} is a folder"
    if recordings.exists():
        if digest_file(recordings) != result["recordings"]["sha256"]:
            return f"{recordings} was changed after it was counted: its SHA-256 is another one"
        how, found = "counted from the recordings", recorded.read(recordings)
    else:
        how, found = "counted from its outcomes", []
        for index, seed, trial, *outcome in result["outcomes"]:
            task_id, family = result["tasks"][index]
            found.append(EpisodeRecord(task_id, index, seed, trial, family, *outcome))
    task_ids = [task_id for task_id, _ in result["tasks"]]
    for episode in found:
        if task_ids[episode.index] != episode.task_id:
            return f"task {episode.index} is {task_ids[episode.index]}, played {episode.task_id}"
    counted = count(result, result["seeds"], found)
    if not recordings.exists():
        known = counted["figures"]
        counted["figures"] = {name: known[name] for name in _OUTCOME_FIGURES if name in known}
    ended = len({(episode.seed, episode.index) for episode in found})
    counted["episodes"] = {"finished": ended, "missing": result["episodes"]["planned"] - ended}
    wrong = differences(result, json.loads(json.dumps(counted)))
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return f"{how}, {'; '.join(wrong[:_SHOWN])}{more}" if wrong else ""


def count(
    started: Mapping[str, Any], seeds: Sequence[int], found: Sequence[EpisodeRecord]
) -> dict[str, Any]:
    """Return a result's parts that are counted from its sorted episodes; see `started_json`."""
    service = started["config"].get("service", {})
    prices = service.get("price_prompt"), service.get("price_response")
    return {
        "figures": summarise(
            found,
            env_id=started["environment"]["id"],
            seeds=seeds,
            trials=started["agent"]["trials"],
            prices=None if None in prices else prices,
        ),
        "outcomes": [[e.index, e.seed, e.trial, e.success, e.score, e.turns] for e in found],
    }


def differences(kept: Any, counted: Any, where: str = "") -> list[str]:
    """Return counted values that differ from kept ones of the same key; `where` is their place."""
    parts: dict[str, tuple[Any, Any]] | None = None
    if isinstance(kept, Mapping) and isinstance(counted, Mapping):
        before = f"{where}." if where else ""
        parts = {f"{before}{key}": (kept[key], counted[key]) for key in counted if key in kept}
    if isinstance(kept, list) and isinstance(counted, list) and len(kept) == len(counted):
        pairs = enumerate(zip(kept, counted, strict=True))
        parts = {f"{where}[{i}]": pair for i, pair in pairs}
    if parts is not None:
        return [text for place, pair in parts.items() for text in differences(*pair, place)]
    same = kept == counted
    if isinstance(kept, int | float) and isinstance(counted, int | float):
        both_nan = kept != kept and counted != counted
        same = both_nan or math.isclose(kept, counted, rel_tol=1e-9, abs_tol=1e-12)
    return [] if same else [f"{where} is {_short(kept)} in place of {_short(counted)}"]


def _short(value: Any) -> str:
    return f"{len(value)} values" if isinstance(value, list) else f"{value!r:.40}"
