"""Plays one unit of an evaluation: a task at a seed, in one trial or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.core.tasks import TaskSet
from agentgyms.recording.recording_format import Recording
from harness.config import EvaluationConfig
from harness.evaluation import episodes
from harness.evaluation.baselines import Baseline, Reflection
from harness.evaluation.evaluate import choose
from harness.evaluation.results import LostUnit
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.episode import run_episode
from harness.rollouts.groups import CollectOptions, RunEpisode
from harness.types.errors import ContextOverflow, ModelUnavailable
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskDraw, seed_of

_DECISIONS: Final = 1
_REFLECTIONS: Final = 2
_SEARCHES: Final = 3
"""Streams of random numbers, different from the stream of episodes."""

REPLAYS: Final = 1
"""How often a trial that ended by an infrastructure error is replayed at once. Requests to the
model's server were already retried many times by then."""


@dataclass(frozen=True, slots=True)
class PlannedUnit:
    """A unit to play: a task with a seed."""

    seed: int
    index: int  # of the task in the evaluation
    task_id: str
    position: int  # of the task in its split; gives the episode's seed

    @property
    def key(self) -> tuple[int, int]:
        """Seed and index."""
        return self.seed, self.index

    @property
    def draw(self) -> TaskDraw:
        """Task and seed of the episode, the same for all agents, models and numbers of tasks."""
        return TaskDraw(self.task_id, seed_of(self.seed, self.position))


def plan(tasks: TaskSet, count: int | None, seeds: Sequence[int]) -> list[PlannedUnit]:
    """Return the units of an evaluation: every chosen task once per seed, seed by seed."""
    positions = {task_id: position for position, task_id in enumerate(tasks)}
    chosen = choose(tasks, count)
    return [
        PlannedUnit(seed, index, task_id, positions[task_id])
        for seed in seeds
        for index, task_id in enumerate(chosen)
    ]


def open_pool(config: EvaluationConfig) -> EnvPool:
    """Return the pool of an evaluation's environments, which record their episodes."""
    wanted = config.model.backend == "expert" or config.search.value == "solver"
    oracle = {"oracle": True} if wanted else {}
    kwargs = pool_arguments(config) | oracle
    return EnvPool(config.env.id, 1, config.run.concurrency, record=True, **kwargs)


def pool_arguments(config: EvaluationConfig) -> dict[str, Any]:
    """Return the arguments of an evaluation's environments."""
    kwargs: dict[str, Any] = {**config.env.kwargs, "split": config.env.split}
    if config.env.max_turns is not None:
        kwargs["max_turns"] = config.env.max_turns
    return kwargs


async def describe_pool(pool: EnvPool) -> tuple[TaskSet, dict[str, Any], dict[str, str]]:
    """Return the tasks of a pool's split, turn limit and data version, and the other parties."""
    group = await pool.take_async()
    env = group.envs[0]
    tasks = await pool.call(lambda: env.tasks, blocking=env.blocking)
    properties = {"max_turns": env.max_turns, "data_version": env.data_version}
    pool.release(group)
    return tasks, properties, pool.parties


async def play(unit: PlannedUnit, pool: EnvPool, baseline: Baseline) -> list[Recording] | LostUnit:
    """Return the recordings of a unit's trials, or the reason of its loss.

    After a failed trial the agent reflects and plays the same episode again, at most
    `baseline.trials` times. It does not if the episode has no turn or the model's context is too
    short to reflect. Raises `ConfigError` if model or environment refuse the request, so that a
    retry would not help.
    """
    reflections: list[str] = []
    recordings: list[Recording] = []
    for trial in range(1, baseline.trials + 1):
        rollout, search = await _trial(unit, trial, pool, baseline, reflections)
        if rollout.error:
            return LostUnit(trial, rollout.error)
        reflection: Reflection | None = None
        preamble = baseline.preamble(reflections)
        if not rollout.success and trial < baseline.trials and rollout.turns:
            seed = seed_of(unit.seed, unit.position, _REFLECTIONS, trial)
            try:
                reflection = await baseline.reflect(rollout, reflections, seed)
            except ContextOverflow:
                reflection = None
            except ModelUnavailable as e:
                return LostUnit(trial, f"{type(e).__name__}: {e}")
        assert rollout.recording is not None
        episodes.describe_episode(
            rollout.recording,
            index=unit.index,
            seed=unit.seed,
            trial=trial,
            stop_reason=rollout.stop_reason,
            reflection=reflection.as_json() if reflection else None,
            preamble=preamble,
            search=search,
        )
        recordings.append(rollout.recording)
        if rollout.success:
            break
        reflections += [reflection.answer] if reflection and reflection.answer else []
    return recordings


async def _trial(
    unit: PlannedUnit, trial: int, pool: EnvPool, baseline: Baseline, reflections: Sequence[str]
) -> tuple[Rollout, dict[str, Any]]:
    """Return the episode of a trial, and the cost of a search beside it."""

    async def play_one(number: int, run: RunEpisode) -> Rollout:
        [rollout] = await collect(
            pool,
            [unit.draw],
            baseline.actor(tuple(reflections)),
            seed=seed_of(unit.seed, unit.position, _DECISIONS, trial),
            options=CollectOptions(retries=REPLAYS, allow_initial_overflow=True, run=run),
            group_indices=[number],
        )
        return rollout

    if baseline.searcher is None:
        return await play_one(0, run_episode), {}
    draws = seed_of(unit.seed, unit.position, _SEARCHES)
    return await baseline.searcher.play(play_one, draws, unit.seed)
