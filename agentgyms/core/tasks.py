"""Tasks, and the set of tasks of a split."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from agentgyms.core.errors import UnknownSplit, UnknownTask


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a benchmark.

    Attributes:
        task_id: The benchmark's own id where it has one.
        family: Kind of task; a column of the papers' tables, such as `heat`.
    """

    task_id: str
    family: str


class TaskSet(Sequence[str]):
    """The task ids of one split, sorted, so that their order is the same on every platform."""

    def __init__(self, split: str, tasks: Iterable[Task]) -> None:
        """Sort `tasks` by id; raise `ValueError` if two share one."""
        self.split = split
        self._tasks = {task.task_id: task for task in sorted(tasks, key=lambda t: t.task_id)}
        self._ids = tuple(self._tasks)

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self._ids[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._tasks

    def __repr__(self) -> str:
        return f"TaskSet({self.split!r}, {len(self)} tasks)"

    def find(self, task_id: str) -> Task:
        """Return the task of this id; `UnknownTask` names similar ids."""
        try:
            return self._tasks[task_id]
        except (KeyError, TypeError):
            near = difflib.get_close_matches(str(task_id), self._ids[:5000], n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            first = f", such as {self._ids[0]!r}" if self._ids else ""
            raise UnknownTask(
                f"split {self.split!r} has no task {task_id!r}: expected one of its "
                f"{len(self)} ids (env.unwrapped.tasks){first}{hint}"
            ) from None

    def part(self, first: int, last: int) -> list[Task]:
        """Return the tasks from index `first` to `last`; `last` is excluded."""
        return [self._tasks[task_id] for task_id in self._ids[first:last]]

    def families(self) -> dict[str, int]:
        """Return how many tasks each family has, by name."""
        return dict(sorted(Counter(task.family for task in self._tasks.values()).items()))


def check_split(split: str, known: Sequence[str], source: str) -> str:
    """Return `split` if `source` has it, else raise `UnknownSplit` with the list of splits."""
    if split not in known:
        raise UnknownSplit(f"{source} has no split {split!r}: expected one of {', '.join(known)}")
    return split
