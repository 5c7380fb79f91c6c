"""The tasks of MiniAppWorld, each generated from its id alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from agentgyms.core.errors import UnknownTask
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import check_split
from agentgyms.envs.appworld.mini.apps import API_NAMES
from agentgyms.envs.appworld.mini.background import addresses, fill
from agentgyms.envs.appworld.mini.people import SPLITS, draw_cast
from agentgyms.envs.appworld.mini.record_builder import Scene
from agentgyms.envs.appworld.mini.records import Profile, Task
from agentgyms.envs.appworld.mini.scenarios import CHALLENGE, COMMON
from agentgyms.envs.appworld.mini.template import TASKS_PER_SCENARIO, Draw, Template
from agentgyms.envs.appworld.mini.world import MiniTask, MiniWorld
from agentgyms.envs.appworld.world import Brief

VERSION: Final = "1"
"""Increased whenever a task id leads to another task."""

COUNTS: Final = {"train": 60, "dev": 20, "test_normal": 20, "test_challenge": 20}
"""Number of scenarios of each split."""

_LETTERS: Final = dict(zip("tdnc", SPLITS, strict=True))
_TASK_ID: Final = re.compile(r"([a-z]+)-([tdnc])([0-9]{3})_([1-3])")
_TEMPLATES: Final = {
    split: {each.name: each for each in (CHALLENGE if split == "test_challenge" else COMMON)}
    for split in SPLITS
}
_CACHED: Final = 32  # tasks; 50 kB each, made in 2 ms
_FIRST_DAY: Final = datetime(2023, 3, 1, 12)
_NUM_DAYS: Final = 600


@dataclass(frozen=True, slots=True)
class SolvedTask:
    """A task with its reference solution: code blocks that solve it, one per turn."""

    task: MiniTask
    solution: tuple[str, ...]


def scenarios(split: str) -> list[tuple[str, Template]]:
    """Return a split's scenarios with their templates; templates and difficulties alternate."""
    templates = list(_TEMPLATES[split].values())
    letter = next(letter for letter, name in _LETTERS.items() if name == split)
    rounds = (divmod(index, len(templates)) for index in range(COUNTS[split]))
    return [
        (f"{templates[turn].name}-{letter}{number + 1:03}", templates[turn])
        for number, turn in rounds
    ]


def task_ids(scenario: str) -> list[str]:
    """Return the ids of a scenario's tasks."""
    return [f"{scenario}_{number}" for number in range(1, TASKS_PER_SCENARIO + 1)]


@lru_cache(maxsize=_CACHED)
def make_task(task_id: str) -> SolvedTask:
    """Return the task of an id, listed or not: `<template>-<letter of the split><number>_<n>`."""
    match = _TASK_ID.fullmatch(task_id)
    split = _LETTERS[match[2]] if match else ""
    chosen = _TEMPLATES[split].get(match[1]) if match else None
    if match is None or chosen is None or match[3] == "000":
        raise UnknownTask(
            f"MiniAppWorld has no task {task_id!r}: expected an id such as 'countnotes-t001_1'"
        )
    scenario, number = task_id.split("_")
    days = Chance(VERSION, scenario, "day").below(_NUM_DAYS)
    day = _FIRST_DAY + timedelta(days=days)
    # Some scenarios have payments earlier in the same month.
    now = day.replace(day=10 + day.day % 16)
    chance = Chance(VERSION, task_id)
    scene = Scene(chance, draw_cast(chance, split), now)
    fill(scene)
    plan = chosen.plan(Draw(f"{VERSION}/{scenario}", int(number), split, scene))
    me = scene.me
    profile = Profile(
        first_name=me.first_name,
        last_name=me.last_name,
        email=me.email,
        phone_number=me.phone_number,
        birthday=me.birthday,
    )
    records = (Task(instruction=plan.instruction), profile, *addresses(scene))
    brief = Brief(
        task_id,
        plan.instruction,
        {
            "first_name": me.first_name,
            "last_name": me.last_name,
            "email": me.email,
            "phone_number": me.phone_number,
        },
        scene.now.isoformat(),
        chosen.difficulty,
        API_NAMES,
    )
    salt = blake2b(f"salt/{VERSION}/{task_id}".encode(), digest_size=16).hexdigest()
    return SolvedTask(MiniTask(brief, scene.database(*records), plan.checks, salt), plan.solution)


class MiniTasks:
    """The tasks of MiniAppWorld; implements `world.Tasks`, without data or other processes."""

    version = f"mini-{VERSION}"
    """Version of the tasks, which recordings contain."""

    def families(self, split: str) -> Mapping[str, int]:
        """Return the difficulty of each task of a split, scenario by scenario."""
        check_split(split, tuple(COUNTS), "MiniAppWorld")
        return {
            task_id: template.difficulty
            for scenario, template in scenarios(split)
            for task_id in task_ids(scenario)
        }

    def open(self, task_id: str) -> MiniWorld:
        """Return a new world of a task, in its initial state."""
        return MiniWorld(make_task(task_id).task)

    def solution(self, task_id: str) -> Sequence[str]:
        """Return the code blocks of a task's reference solution, one per turn."""
        return make_task(task_id).solution
