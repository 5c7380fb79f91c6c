"""MiniAppWorld as a source of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentgyms.core.tasks import check_split
from agentgyms.envs.appworld.mini.generator import COUNTS, VERSION, make_task, scenarios, task_ids
from agentgyms.envs.appworld.mini.world import MiniWorld


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
