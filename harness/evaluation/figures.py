"""All figures of an evaluation, counted from its episodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from harness.credit.table import LOOKUPS
from harness.evaluation import breakdowns, samples
from harness.evaluation.episodes import EpisodeRecord
from harness.evaluation.statistics import mean_and_std
from harness.evaluation.units import Unit, grouped, mean_over, success_and_score, units_of
from harness.types.rollout import Usage

_SPENT: Final = {
    "prompt": "model_prompt_tokens",
    "response": "model_response_tokens",
    "calls": "model_calls",
}
"""Token counts of partners and judges, and the metrics that hold them."""


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
    tokens and cost count all trials.

    Args:
        episodes: The finished episodes, in any order.
        env_id: The environment's id; it decides the breakdowns.
        seeds: The evaluation's seeds; every task is played once per seed.
        trials: Maximum number of trials per task.
        prices: Price of a million prompt tokens and of a million response tokens.

    Returns:
        - `success`, `score`: see `harness.evaluation.units.mean_of`.
        - `turns`: mean number of turns per episode; each trial is an episode.
        - `invalid_share`, `failed_share`, `unfinished_share`, `cut_share`: of all turns.
        - `stop_reasons`: number of episodes by reason.
        - `tokens`: total of `prompt`, `response` and `calls`; `cost`: their cost by `prices`.
        - `costs`: mean environment `steps` and `tokens` of a task with a seed, with all trials and
          search.
        - `thoughts`, if known: mean `tokens` of a turn's thought, the `longest`, and `cut_share`,
          the share of turns whose thought reached its limit or has no end.
        - `parties`: total `tokens` and `cost` of partner and judge, from the environment's metrics;
          None if no model took part.
        - `families`: `success`, `score` and `count` of each, in the papers' order.
        - `breakdowns`: tables of this environment; see `harness.evaluation.breakdowns`.
        - `metrics`: mean of each of the environment's metrics over the units that have it;
          `metric_counts`: the number of these units.
        - `trials`: success within the first, the first two, ... trials.
        - `samples`: average success and pass@k, if there are several seeds; see
          `harness.evaluation.samples.summarise`.
        - `documentation`: of AppWorld, for each of `LOOKUPS` the mean number of turns per episode
          that call it (`calls`) and their share of all turns (`share`).
    """
    units = units_of(episodes)
    usage = sum((episode.usage for episode in episodes), Usage())
    families = grouped(units, lambda unit: unit.family)
    overall = success_and_score(units, seeds)
    return {
        "success": overall["success"],
        "score": overall["score"],
        "turns": mean_and_std([episode.turns for episode in episodes])[0],
        **_turn_shares(episodes),
        "stop_reasons": dict(sorted(Counter(e.stop_reason.value for e in episodes).items())),
        "tokens": {"prompt": usage.prompt, "response": usage.response, "calls": usage.calls},
        "cost": None if prices is None else _cost(usage, *prices),
        "costs": {
            "steps": mean_over(units, seeds, lambda unit: unit.steps, share=False),
            "tokens": mean_over(units, seeds, lambda unit: unit.tokens, share=False),
        },
        **_thoughts(episodes),
        "parties": _parties(episodes),
        "families": {
            n: success_and_score(families[n], seeds) for n in breakdowns.in_order(families)
        },
        "breakdowns": breakdowns.breakdowns_of(env_id, units, seeds),
        **_metrics(units),
        "trials": [
            {"trial": n, "success": _success_within(units, seeds, n)} for n in range(1, trials + 1)
        ],
        **({"samples": samples.summarise(units, seeds)} if len(seeds) > 1 else {}),
        **({"documentation": _lookups(episodes)} if _has_documentation(env_id) else {}),
    }


def _has_documentation(env_id: str) -> bool:
    return breakdowns.env_name(env_id) == "AppWorld"


def _lookups(episodes: Sequence[EpisodeRecord]) -> dict[str, dict[str, float | None]]:
    turns = sum(episode.turns for episode in episodes)
    counts = {name: sum(e.lookups.get(name, 0) for e in episodes) for name in LOOKUPS}
    return {
        name: {
            "calls": count / len(episodes) if episodes else None,
            "share": count / turns if turns else None,
        }
        for name, count in counts.items()
    }


def _cost(usage: Usage, price_prompt: float, price_response: float) -> float:
    return (usage.prompt * price_prompt + usage.response * price_response) / 1e6


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
    tokens = {
        name: round(math.fsum(episode_metrics[metric] for episode_metrics in metrics))
        for name, metric in _SPENT.items()
    }
    cost = math.fsum(episode_metrics.get("cost", math.nan) for episode_metrics in metrics)
    return {"tokens": tokens, "cost": None if math.isnan(cost) else cost}


def _success_within(units: Sequence[Unit], seeds: Sequence[int], trials: int) -> dict[str, Any]:
    return mean_over(units, seeds, lambda unit: unit.success_within(trials))


def _turn_shares(episodes: Sequence[EpisodeRecord]) -> dict[str, float | None]:
    turns = sum(episode.turns for episode in episodes)
    counts = {
        "invalid_share": sum(episode.invalid for episode in episodes),
        "failed_share": sum(episode.failed for episode in episodes),
        "unfinished_share": sum(episode.unfinished for episode in episodes),
        "cut_share": sum(episode.cut for episode in episodes),
    }
    return {name: count / turns if turns else None for name, count in counts.items()}


def _metrics(units: Sequence[Unit]) -> dict[str, dict[str, Any]]:
    names = sorted({name for unit in units for name in unit.trials[-1].metrics})
    values_by_name = {n: [v for unit in units if (v := unit.metric(n)) is not None] for n in names}
    return {
        "metrics": {name: mean_and_std(values)[0] for name, values in values_by_name.items()},
        "metric_counts": {name: len(values) for name, values in values_by_name.items()},
    }
