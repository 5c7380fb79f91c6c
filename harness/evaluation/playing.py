"""Plays one unit of an evaluation: a task at a seed, in one trial or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.tasks import TaskSet
from agentgyms.transcript import Recording
from harness.baselines import Baseline, Reflection
from harness.collect import EnvPool, collect
from harness.errors import ContextOverflow, ModelUnavailable
from harness.evaluate import choose
from harness.evaluation import episodes
from harness.evaluation.config import EvaluationConfig
from harness.evaluation.results import Lost
from harness.rollout import Rollout
from harness.sampling import TaskDraw, seed_of

_DECISIONS: Final = 1
_REFLECTIONS: Final = 2
"""Streams of random numbers, apart from that of episodes."""

REPLAYS: Final = 1
"""How often a trial that infrastructure spoiled is played again at once. The model's server has
been asked again many times by then."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A unit to be played: a task at a seed.

    Attributes:
        seed: One of the evaluation's.
        index: Of the task in the evaluation.
        task_id: Of the task.
        position: Of the task in its whole split, which gives the episode its seed.
    """

    seed: int
    index: int
    task_id: str
    position: int

    @property
    def place(self) -> tuple[int, int]:
        """Seed and index."""
        return self.seed, self.index

    @property
    def draw(self) -> TaskDraw:
        """The episode: the same for all agents and models, however many tasks are played."""
        return TaskDraw(self.task_id, seed_of(self.seed, self.position))


def plan(tasks: TaskSet, count: int | None, seeds: Sequence[int]) -> list[Planned]:
    """Return the units of an evaluation: every chosen task once per seed, seed by seed."""
    positions = {task_id: position for position, task_id in enumerate(tasks)}
    chosen = choose(tasks, count)
    return [
        Planned(seed, index, task_id, positions[task_id])
        for seed in seeds
        for index, task_id in enumerate(chosen)
    ]


def open_pool(config: EvaluationConfig) -> EnvPool:
    """Return the environments of an evaluation, which keep recordings."""
    kwargs: dict[str, Any] = {**config.env.kwargs, "split": config.env.split}
    if config.env.max_turns is not None:
        kwargs["max_turns"] = config.env.max_turns
    if config.model.backend == "expert":
        kwargs["oracle"] = True
    return EnvPool(config.env.id, 1, config.run.concurrency, record=True, **kwargs)


async def described(pool: EnvPool) -> tuple[TaskSet, dict[str, Any], dict[str, str]]:
    """Return the tasks of a pool's split, its turn limit and version, and who else has a part.

    Raises:
        AgentGymsError: The environment cannot be made.
    """
    group = await pool.take_soon()
    env = group.envs[0]
    tasks = await pool.call(lambda: env.tasks, blocking=env.blocking)
    told = {"max_turns": env.max_turns, "data_version": env.data_version}
    pool.give_back(group)
    return tasks, told, pool.parties


async def play(unit: Planned, pool: EnvPool, baseline: Baseline) -> list[Recording] | Lost:
    """Return the recordings of a unit's trials, or why it is lost.

    A failed trial is reflected on and tried again, in the same episode, up to `baseline.trials`. A
    reflection for which the model's context is too short is left out, and so is one on an episode
    without a turn.

    Raises:
        ConfigError: The model or the environment refuses what it is asked; more of it would not
            help.
    """
    reflections: list[str] = []
    recordings: list[Recording] = []
    for trial in range(1, baseline.trials + 1):
        rollout = await _trial(unit, trial, pool, baseline, reflections)
        if rollout.error:
            return Lost(trial, rollout.error)
        reflection: Reflection | None = None
        preamble = baseline.preamble(reflections)
        if not rollout.success and trial < baseline.trials and rollout.turns:
            seed = seed_of(unit.seed, unit.position, _REFLECTIONS, trial)
            try:
                reflection = await baseline.reflect(rollout, reflections, seed)
            except ContextOverflow:
                reflection = None
            except ModelUnavailable as e:
                return Lost(trial, f"{type(e).__name__}: {e}")
        assert rollout.recording is not None
        episodes.about(
            rollout.recording,
            index=unit.index,
            seed=unit.seed,
            trial=trial,
            stop_reason=rollout.stop_reason,
            reflection=_told(reflection),
            preamble=preamble,
        )
        recordings.append(rollout.recording)
        if rollout.success:
            break
        reflections += [reflection.answer] if reflection and reflection.answer else []
    return recordings


async def _trial(
    unit: Planned, trial: int, pool: EnvPool, baseline: Baseline, reflections: Sequence[str]
) -> Rollout:
    [rollout] = await collect(
        pool,
        [unit.draw],
        baseline.actor(tuple(reflections)),
        seed=seed_of(unit.seed, unit.position, _DECISIONS, trial),
        retries=REPLAYS,
        may_lose_at_once=True,
    )
    return rollout


def _told(reflection: Reflection | None) -> dict[str, Any] | None:
    if reflection is None:
        return None
    usage = reflection.usage
    return {
        "prompt": reflection.prompt,
        "answer": reflection.answer,
        "tokens": [usage.prompt, usage.response],
    }
