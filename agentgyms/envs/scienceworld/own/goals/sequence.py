"""The goals of a task: some in their order, and others that may be reached at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.goals.base import (
    FAILURE,
    SUCCESS,
    UNSUCCESSFUL,
    Goal,
    GoalReturn,
    Sight,
)
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.sets import MutableSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.goals.monitor import ObjMonitor
    from agentgyms.envs.scienceworld.own.objects.agent import Agent

_RULE = "-" * 100 + "\n"


class GoalSequence:
    """Watches a game for its goals: `subgoals` in order, `unordered` at any time for the score.

    `failed` stays so, though goals are still noted. `completed_keys` has the keys of reached goals.
    """

    __slots__ = (
        "completed_keys",
        "cur_subgoal_idx",
        "failed",
        "last_satisfied_with_object",
        "reached",
        "stored_values",
        "subgoals",
        "unordered",
    )

    def __init__(self, subgoals: Sequence[Goal], unordered: Sequence[Goal] = ()) -> None:
        self.subgoals = list(subgoals)
        self.unordered = list(unordered)
        self.reached = [False] * len(self.unordered)
        self.cur_subgoal_idx = 0
        self.failed = False
        self.last_satisfied_with_object: EnvObject | None = None
        self.stored_values: dict[str, str] = {}
        self.completed_keys: MutableSet[str] = MutableSet()

    def reset(self) -> None:
        """Forget the goals reached and the failure; the engine keeps keys and stored values."""
        self.cur_subgoal_idx = 0
        self.last_satisfied_with_object = None
        self.reached = [False] * len(self.unordered)
        self.failed = False

    def is_completed(self) -> bool:
        """Tell whether all ordered goals are reached."""
        return self.cur_subgoal_idx >= len(self.subgoals)

    def is_failed(self) -> bool:
        """Tell whether the task was failed."""
        return self.failed

    def score(self) -> float:
        """Return the score, from 0 to 1, or -1 for a failed task."""
        if self.failed:
            return -1.0
        total = float(self.cur_subgoal_idx) / float(len(self.subgoals))
        if any(self.reached):
            unit = (1 / (float(len(self.subgoals)) + 1)) / float(len(self.unordered))
            extra = 0.0
            for _ in range(sum(self.reached)):  # added one by one, as the engine rounds
                extra += unit
            total += extra
        return min(total, 1.0)

    def tick(self, obj_monitor: ObjMonitor, agent: Agent) -> None:
        """Note the goals that the game reaches now."""
        sight = Sight(agent)
        while self._tick_ordered(obj_monitor, sight):
            pass
        while self._tick_unordered(obj_monitor, sight):
            pass

    def _tick_ordered(self, obj_monitor: ObjMonitor, sight: Sight) -> bool:
        """Check the next ordered goal; tell whether it was reached."""
        if self.is_completed():
            return False
        goal = self.subgoals[self.cur_subgoal_idx]
        told = UNSUCCESSFUL
        if self._ready(goal):
            for focus in obj_monitor.monitored_objects():
                told = self._judged(goal, focus, sight)
        if told is FAILURE:
            self.failed = True
        if told is not SUCCESS:
            return False
        if goal.satisfied_with_object is not None:
            self.last_satisfied_with_object = goal.satisfied_with_object
        if goal.defocus_on_success:
            obj_monitor.clear_monitored_objects()
        self._note(goal)
        self.cur_subgoal_idx += 1
        return True

    def _tick_unordered(self, obj_monitor: ObjMonitor, sight: Sight) -> bool:
        """Check all unordered goals once; tell whether one was reached."""
        found = False
        for at, goal in enumerate(self.unordered):
            if self.reached[at] or not self._ready(goal):
                continue
            # First without a focus and then with it: goals that count do so twice.
            for focus in (None, *obj_monitor.monitored_objects()):
                if self._judged(goal, focus, sight) is SUCCESS:
                    self.reached[at] = found = True
                    self._note(goal)
                    break
        return found

    def _judged(self, goal: Goal, focus: EnvObject | None, sight: Sight) -> GoalReturn:
        return goal.check(focus, sight, self)

    def _ready(self, goal: Goal) -> bool:
        return all(key in self.completed_keys for key in goal.prerequisites)

    def _note(self, goal: Goal) -> None:
        if goal.key:
            self.completed_keys.add(goal.key)

    def progress_string(self) -> str:
        """Return the engine's table of the goals."""
        ordered = [at < self.cur_subgoal_idx for at in range(len(self.subgoals))]
        return "".join(
            [
                f"Completed keys: {', '.join(self.completed_keys)}\n{_RULE}",
                f"Sequential Subgoals:\n{_RULE}",
                *_rows(self.subgoals, ordered),
                f"{_RULE}Unordered and Optional Subgoals:\n{_RULE}",
                *_rows(self.unordered, self.reached),
                _RULE,
            ]
        )


def _rows(goals: list[Goal], passed: list[bool]) -> list[str]:
    return [
        f"{at}\t{'true' if done else 'false'}\t{type(goal).__name__:>40}\t{goal.description}\n"
        for at, (goal, done) in enumerate(zip(goals, passed, strict=True))
    ]
