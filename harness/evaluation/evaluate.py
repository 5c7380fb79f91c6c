"""Evaluation during training: success, score and turns on held-out tasks, with intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from agentgyms.core.tasks import TaskSet
from harness.credit.table import INVALID_FEEDBACK
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.evaluation.breakdowns import SCENARIO_TASKS
from harness.evaluation.statistics import wilson
from harness.rollouts.collect import collect_distributed
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import Actor
from harness.types.rollout import OnFinish, Rollout, models_cost
from harness.types.task_draws import TaskDraw, seed_of

_Item = TypeVar("_Item")

_IN_SCENARIO: Final = re.compile(r"[^_]+_\d+")


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of successes with its 95 % Wilson interval."""

    successes: int
    count: int

    @property
    def value(self) -> float:
        """Share in [0, 1]; nan if `count` is 0."""
        return self.successes / self.count if self.count else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound; (0, 1) if `count` is 0."""
        return wilson(self.value, self.count)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of one evaluation; unfinished episodes count in `missing` alone."""

    split: str
    success: Rate
    families: dict[str, Rate]  # success by family
    score: float  # mean, in [0, 1]; 0 for an unscored episode
    turns: float  # mean number
    invalid: float  # share of turns with a malformed or inadmissible action
    missing: int  # episodes that could not be finished
    episodes: list[dict[str, Any]]
    parties: dict[str, str] = field(default_factory=dict)  # partner and judge
    data_source: str | None = None  # see `TextEnv.data_source`
    models_usd: float = 0.0  # the parties' cost, as far as prices are known

    @property
    def score_interval(self) -> tuple[float, float]:
        """95 % interval of `score`; see `wilson`."""
        return wilson(self.score, self.success.count)

    def metrics(self) -> dict[str, float]:
        """Return the figures to log, under `eval/<split>/`."""
        low, high = self.success.interval
        score_low, score_high = self.score_interval
        figures = {
            "success": self.success.value,
            "success_low": low,
            "success_high": high,
            "score": self.score,
            "score_low": score_low,
            "score_high": score_high,
            "turns": self.turns,
            "invalid_share": self.invalid,
            "missing": float(self.missing),
        }
        figures |= {f"success_{name}": rate.value for name, rate in self.families.items()}
        return {f"eval/{self.split}/{name}": value for name, value in figures.items()}

    def record(self) -> dict[str, Any]:
        """Return the evaluation as a run's folder keeps it, JSON-plain, with every episode."""
        return {
            "split": self.split,
            "parties": self.parties,
            "data_source": self.data_source,
            "success": self.success.value,
            "interval": list(self.success.interval),
            "score": self.score,
            "score_interval": list(self.score_interval),
            "families": {k: [rate.successes, rate.count] for k, rate in self.families.items()},
            "turns": self.turns,
            "invalid_share": self.invalid,
            "missing": self.missing,
            "episodes": self.episodes,
        }


def choose(tasks: TaskSet, count: int | None) -> list[str]:
    """Return `count` tasks of a split, spread evenly over its families, or all of them.

    The choice depends only on the split, so every evaluation plays the same tasks. All tasks of a
    scenario (AppWorld) are chosen together; only the last scenario may be incomplete. Both seats of
    SOTOPIA's encounters are chosen equally often.
    """
    if count is None or count >= len(tasks):
        return list(tasks)
    queues: dict[str, list[list[str]]] = {}
    for together in _scenarios(tasks):
        queues.setdefault(tasks.find(together[0]).family, []).append(together)
    per_family = [_in_order(queues[name], place) for place, name in enumerate(sorted(queues))]
    longest = max(len(queue) for queue in per_family)
    dealt = [queue[i] for i in range(longest) for queue in per_family if i < len(queue)]
    return sorted([task_id for together in dealt for task_id in together][:count])


def _scenarios(tasks: TaskSet) -> list[list[str]]:
    """Return the tasks by scenario if all ids are AppWorld's `<scenario>_<n>`, else one by one."""
    found: dict[str, list[str]] = {}
    for task_id in tasks:
        found.setdefault(task_id.rpartition("_")[0], []).append(task_id)
    known = all(_IN_SCENARIO.fullmatch(task_id) for task_id in tasks)
    if known and max(len(together) for together in found.values()) <= SCENARIO_TASKS:
        return list(found.values())
    return [[task_id] for task_id in tasks]


def _in_order(queue: Sequence[list[str]], place: int) -> list[list[str]]:
    """Return a family's tasks in the order of choice; families at odd places start with seat 1."""
    pairs = list(zip(queue[::2], queue[1::2], strict=False))
    seats = ([f"{first[0].removesuffix('/0')}/{seat}" for seat in (0, 1)] for first, _ in pairs)
    if len(queue) % 2 or any([*a, *b] != both for (a, b), both in zip(pairs, seats, strict=True)):
        return _spread(queue)
    spread = _spread(pairs)
    return [pair[(place + i + again) % 2] for again in (0, 1) for i, pair in enumerate(spread)]


def _spread(queue: Sequence[_Item]) -> list[_Item]:
    """Reorder so that every prefix is spread over the whole list (golden-ratio stride)."""
    step = 0.6180339887498949
    return [queue[i] for i in sorted(range(len(queue)), key=lambda i: (i * step) % 1.0)]


async def evaluate(
    pool: EnvPool,
    tasks: Sequence[str],
    split: str,
    actor: Actor,
    *,
    seed: int,
    processes: ProcessGroup = SINGLE_PROCESS,
    on_finish: OnFinish = lambda _: None,
) -> Evaluation:
    """Play every task exactly once and return the results.

    The pool has the split's environments in groups of one, `seed` decides over episodes and
    decisions, `processes` share the tasks, and `on_finish` gets each rollout of this process.
    """
    draws = [TaskDraw(task_id, seed_of(seed, i)) for i, task_id in enumerate(tasks)]
    options = CollectOptions(on_finish=on_finish)
    rollouts = await collect_distributed(processes, pool, draws, actor, seed=seed, options=options)
    found = summarise(rollouts, split)
    return replace(found, parties=pool.parties, data_source=pool.data_source)


def summarise(rollouts: Sequence[Rollout], split: str) -> Evaluation:
    """Return the evaluation of finished rollouts; those with errors are counted as missing."""
    finished = [rollout for rollout in rollouts if not rollout.error]
    families: dict[str, Rate] = {}
    for rollout in finished:
        before = families.get(rollout.family, Rate(0, 0))
        families[rollout.family] = Rate(before.successes + rollout.success, before.count + 1)
    turns = [turn for rollout in finished for turn in rollout.turns]
    invalid = sum(turn.feedback in INVALID_FEEDBACK for turn in turns)
    count = len(finished)
    return Evaluation(
        split=split,
        success=Rate(sum(rollout.success for rollout in finished), count),
        families=dict(sorted(families.items())),
        score=sum(rollout.score for rollout in finished) / count if count else math.nan,
        turns=len(turns) / count if count else math.nan,
        invalid=invalid / len(turns) if turns else math.nan,
        missing=len(rollouts) - count,
        episodes=[
            {
                "task_id": rollout.task_id,
                "family": rollout.family,
                "success": rollout.success,
                "score": rollout.score,
                "turns": len(rollout.turns),
                "stop_reason": rollout.stop_reason.value,
                "error": rollout.error,
                "actions": [turn.action for turn in rollout.turns],
            }
            for rollout in rollouts
        ],
        models_usd=models_cost(rollouts),
    )
