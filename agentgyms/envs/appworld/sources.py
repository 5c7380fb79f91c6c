"""Opens the tasks of a source, and selects those of an environment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.envs.appworld.world import Tasks

ENGINES: Final = ("mini", "appworld")
SOURCES: Final = ("generated", "official")
SPLITS: Final = ("train", "dev", "test_normal", "test_challenge", "sample")

_SAMPLE_SCENARIOS: Final = 2
"""Scenarios of each difficulty in the split `sample`."""


def open_tasks(engine: str, source: str, data_path: str | None) -> Tasks:
    """Return the tasks of an environment's arguments; equal arguments share one object."""
    if engine not in ENGINES:
        raise BadOption(f"engine {engine!r:.60} is unknown: expected one of {', '.join(ENGINES)}")
    if source not in SOURCES:
        raise BadOption(f"source {source!r:.60} is unknown: expected one of {', '.join(SOURCES)}")
    if engine == "mini" and source != "generated":
        raise BadOption("source='official' is for engine='appworld': pass it, or leave source out")
    if data_path is not None and (engine, source) != ("appworld", "official"):
        raise BadOption(
            "data_path is for engine='appworld' with source='official': pass both, or leave it out"
        )
    return _mini_tasks() if engine == "mini" else _engine_tasks(source, data_path)


@lru_cache(maxsize=1)
def _mini_tasks() -> Tasks:
    from agentgyms.envs.appworld.mini.generator import MiniTasks

    return MiniTasks()


@lru_cache(maxsize=8)
def _engine_tasks(source: Any, data_path: str | None) -> Tasks:
    from agentgyms.envs.appworld.engine.world import EngineTasks

    return EngineTasks(source, data_path)


def choose(
    tasks: Tasks,
    split: str,
    difficulty: Collection[int] | None,
    scenarios: Sequence[str] | None,
) -> TaskSet:
    """Return the tasks of a split with these difficulties and scenarios; None selects all.

    Raises `BadOption` if a prefix in `scenarios` matches no scenario of the split.
    """
    of_split = tasks.families("train" if split == "sample" else split)
    for name in scenarios or ():
        if not any(_matches(task_id, name) for task_id in of_split):
            raise BadOption(
                f"scenarios names {name!r:.60}, which matches no scenario of split {split!r}: "
                f"expected prefixes of scenario ids, such as {scenario_of(min(of_split))!r}"
            )
    chosen = {
        task_id: level
        for task_id, level in of_split.items()
        if (difficulty is None or level in difficulty)
        and (scenarios is None or any(_matches(task_id, name) for name in scenarios))
    }
    if split == "sample":
        chosen = _sample(chosen)
    return TaskSet(split, [Task(task_id, family(level)) for task_id, level in chosen.items()])


def scenario_of(task_id: str) -> str:
    """Return the scenario that a task belongs to."""
    return task_id.rpartition("_")[0]


def family(difficulty: int) -> str:
    """Return the family of the tasks of a difficulty, 0 if it is not known."""
    return f"difficulty-{difficulty}" if difficulty else "difficulty-unknown"


def _matches(task_id: str, name: str) -> bool:
    return scenario_of(task_id).startswith(name)


def _sample(train_tasks: Mapping[str, int]) -> dict[str, int]:
    """Return the tasks of the first scenarios of each difficulty."""
    first_scenarios: dict[int, list[str]] = {}
    for task_id, level in train_tasks.items():
        scenarios = first_scenarios.setdefault(level, [])
        if scenario_of(task_id) not in scenarios and len(scenarios) < _SAMPLE_SCENARIOS:
            scenarios.append(scenario_of(task_id))
    return {
        task_id: level
        for task_id, level in train_tasks.items()
        if scenario_of(task_id) in first_scenarios[level]
    }
