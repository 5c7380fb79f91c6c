"""The task set of a split, whose tasks are made on demand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import UnknownTask
from agentgyms.core.tasks import Task, TaskSet

_CHUNK: Final = 1 << 16


class NumberedGoals(Protocol):
    """Goals by number, with their ids and families."""

    @property
    def families(self) -> Sequence[str]:
        """The names of all families."""

    def task_id(self, number: int) -> str:
        """Return the id of a goal."""

    def family_numbers(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the index in `families` of each goal."""


class GoalTasks(TaskSet):
    """A split's tasks, made on demand from goal numbers sorted by id: millions need no memory."""

    def __init__(self, split: str, goals: NumberedGoals, numbers: NDArray[np.int32]) -> None:
        self.split = split
        self._goals = goals
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(map(self._goals.task_id, self._numbers[index].tolist()))
        return self._goals.task_id(int(self._numbers[index]))

    def __iter__(self) -> Iterator[str]:
        return (self._goals.task_id(int(number)) for number in self._numbers)

    def __contains__(self, task_id: object) -> bool:
        if not isinstance(task_id, str):
            return False
        index = bisect_left(self, task_id)
        return index < len(self) and self[index] == task_id

    def find(self, task_id: str) -> Task:
        """Return the task of this id; an `UnknownTask` names its neighbours."""
        index = bisect_left(self, task_id) if isinstance(task_id, str) else 0
        near = self[max(0, index - 1) : index + 2]
        if task_id not in near:
            hint = f", such as {' or '.join(map(repr, near))}" if near else ""
            raise UnknownTask(
                f"split {self.split!r} has no task {task_id!r}: expected one of its "
                f"{len(self)} ids (env.unwrapped.tasks){hint}"
            )
        (family,) = self._goals.family_numbers(self._numbers[index : index + 1])
        return Task(task_id, self._goals.families[family])

    def part(self, first: int, last: int) -> list[Task]:
        """Return the tasks from index `first` up to, not including, `last`."""
        numbers, names = self._numbers[first:last], self._goals.families
        families = self._goals.family_numbers(numbers).tolist()
        return [
            Task(self._goals.task_id(number), names[family])
            for number, family in zip(numbers.tolist(), families, strict=True)
        ]

    def families(self) -> dict[str, int]:
        """Return how many tasks each family has, by name."""
        names = self._goals.families
        counts = np.zeros(len(names), np.int64)
        for first in range(0, len(self), _CHUNK):
            numbers = self._numbers[first : first + _CHUNK]
            counts += np.bincount(self._goals.family_numbers(numbers), minlength=len(names))
        return {
            name: int(counts[i]) for i, name in sorted(enumerate(names), key=_name) if counts[i]
        }


def _name(item: tuple[int, str]) -> str:
    return item[1]
