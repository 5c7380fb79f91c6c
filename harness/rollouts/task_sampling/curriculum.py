"""A curriculum: tasks that are too easy or too hard, by their measured success, come less often.

A group whose rollouts all succeed or all fail has no advantage to learn from. By their success in
training so far tasks are in the pool `easy`, `hard` or `normal`, and a pass over the split leaves
out a share of the first two. The others are drawn as by `TaskSampler`. No task leaves the split:
one that was left out may be drawn in the next pass, and is measured again.

The draw depends on the seed and on the rollouts of the steps before. `state_dict` is the state
after the last whole step, so a resumed run draws the tasks of an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from agentgyms.core.tasks import TaskSet
from harness.config.rollout_settings import CurriculumConfig
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskDraw, TaskSampler, seed_of

Pool = Literal["easy", "normal", "hard"]

_LEFT_OUT: Final = 0xC077
"""Random stream of the decisions about easy and hard tasks."""


class Curriculum(TaskSampler):
    """Draws the tasks of a split by their success so far."""

    def __init__(self, tasks: TaskSet, seed: int, config: CurriculumConfig) -> None:
        """Raise `ValueError` if there is no task."""
        super().__init__(tasks, seed)
        self._split, self._config = tasks, config
        self._position = self._num_left_out = 0
        self._success: dict[str, float] = {}
        self._state = self._now()

    def _now(self) -> dict[str, Any]:
        return {"position": self._position, "success": dict(self._success)}

    def draw(self, step: int, count: int, round_index: int = 0) -> list[TaskDraw]:
        """Return the next `count` tasks of the passes; one may come twice where a pass ends."""
        del step
        if not round_index:
            self._num_left_out = 0
        return [self._next() for _ in range(count)]

    def _next(self) -> TaskDraw:
        """Return the next task that is not left out; the last one if a whole pass is."""
        hard, easy = self._config.shares
        for _ in range(len(self._split)):
            position = self._position
            draw = self.at(position)
            self._position += 1
            by_task = self._config.by == "task"
            pool = self.pool(draw.task_id if by_task else self._split.find(draw.task_id).family)
            share = {"easy": easy, "hard": hard}.get(pool, 1.0)
            if seed_of(self._seed, _LEFT_OUT, position) < share * 2**63:
                break
            self._num_left_out += 1
        return draw

    def pool(self, name: str) -> Pool:
        """Return the pool of a task or family; one that was not measured yet is normal."""
        success = self._success.get(name)
        if success is None:
            return "normal"
        hard, easy = self._config.bounds
        if success >= easy:
            return "easy"
        return "hard" if success <= hard else "normal"

    def record(self, rollouts: Sequence[Rollout]) -> None:
        """Measure a group's task anew: the mean of its earlier success and the members'."""
        members = [one for one in rollouts if one.turns and not one.error and one.parent is None]
        if not members:
            return
        name = members[0].task_id if self._config.by == "task" else members[0].family
        success = sum(one.success for one in members) / len(members)
        self._success[name] = 0.5 * self._success.get(name, success) + 0.5 * success

    def end_step(self) -> dict[str, float]:
        """End the step; return the shares of easy and hard tasks and the number left out."""
        self._state = self._now()
        sizes: Mapping[str, int] = {} if self._config.by == "task" else self._split.families()
        counts = {"easy": 0, "normal": 0, "hard": 0}
        for name in self._success:
            counts[self.pool(name)] += sizes.get(name, 1)
        return {
            "rollout/easy_tasks": counts["easy"] / len(self._split),
            "rollout/hard_tasks": counts["hard"] / len(self._split),
            "rollout/left_out_tasks": float(self._num_left_out),
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last whole step."""
        return self._state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the result of `state_dict`."""
        self._position = int(state["position"])
        self._success = {str(name): float(value) for name, value in state["success"].items()}
        self._state = self._now()
