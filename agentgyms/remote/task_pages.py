"""The tasks of a split on a server, which come in pages where they are many."""

from __future__ import annotations

import contextlib
import threading
import weakref
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any, Final, Protocol, overload

from gymnasium.error import ClosedEnvironmentError

from agentgyms.core.errors import UnknownTask
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.remote.connection import LOST, CannotRebuild, Connection
from agentgyms.remote.lease import Lease, Listed

_PAGE: Final = 1_000
_KEPT: Final = 64


class LeaseHolder(Protocol):
    """An environment that has a session on a server."""

    @property
    def lease(self) -> Lease | None:
        """The session, None while it is lost; `ClosedEnvironmentError` once closed."""


class PagedTasks(TaskSet):
    """The tasks of a split with more tasks than one reply holds; pages are fetched when needed.

    Ids are found by bisection. Threads may use it, also after its environment was closed: then each
    page opens a session. It closes `connection`, which is for it alone.
    """

    def __init__(
        self, first: Listed, env: LeaseHolder, connection: Connection, kwargs: dict[str, Any]
    ) -> None:
        self.split, self._total = first.split, first.total
        self._env, self._connection, self._kwargs = weakref.ref(env), connection, kwargs
        self._lock = threading.Lock()
        self._pages: OrderedDict[int, list[Task]] = OrderedDict()
        weakref.finalize(self, connection.close)

    def __len__(self) -> int:
        return self._total

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        places = range(self._total)[index]
        if isinstance(places, range):
            return tuple(self._at(place).task_id for place in places)
        return self._at(places).task_id

    def __iter__(self) -> Iterator[str]:
        return (self._at(place).task_id for place in range(self._total))

    def __contains__(self, task_id: object) -> bool:
        if not isinstance(task_id, str):
            return False
        place = bisect_left(self, task_id)
        return place < self._total and self[place] == task_id

    def find(self, task_id: str) -> Task:
        """Return the task of this id; `UnknownTask` names its neighbours."""
        place = bisect_left(self, task_id) if isinstance(task_id, str) else 0
        near = self.part(max(0, place - 1), min(place + 2, self._total))
        for task in near:
            if task.task_id == task_id:
                return task
        raise UnknownTask(
            f"split {self.split!r} has no task {task_id!r}: expected one of its {self._total} ids "
            f"(env.unwrapped.tasks), such as {' or '.join(repr(task.task_id) for task in near)}"
        )

    def part(self, first: int, last: int) -> list[Task]:
        """Return the tasks from index `first` up to, not including, `last`."""
        return [self._at(place) for place in range(first, min(last, self._total))]

    def families(self) -> dict[str, int]:
        """Return how many tasks each family has, by name; every page is fetched for it."""
        counts = Counter(self._at(place).family for place in range(self._total))
        return dict(sorted(counts.items()))

    def _at(self, place: int) -> Task:
        number, index = divmod(place, _PAGE)
        return self._page(number)[index]

    def _page(self, number: int) -> list[Task]:
        with self._lock:
            if number not in self._pages:
                self._pages[number] = self._fetch(number * _PAGE)
                if len(self._pages) > _KEPT:
                    self._pages.popitem(last=False)
            self._pages.move_to_end(number)
            return self._pages[number]

    def _fetch(self, offset: int) -> list[Task]:
        with contextlib.suppress(*LOST, ClosedEnvironmentError):
            env = self._env()
            lease = env.lease if env is not None else None
            if lease is not None:
                return self._read(self._connection.moved(lease), offset)
        lease = self._connection.open(self._kwargs)
        try:
            return self._read(lease, offset)
        finally:
            lease.dismiss()

    def _read(self, lease: Lease, offset: int) -> list[Task]:
        listed = lease.tasks(offset, _PAGE)
        if listed.total != self._total or len(listed.tasks) != min(_PAGE, self._total - offset):
            raise CannotRebuild(
                f"{lease.endpoint.url} lists {len(listed.tasks)} tasks from {offset} on, of "
                f"{listed.total} in split {listed.split!r}, where there were {self._total}: do the "
                "servers have different versions or data?"
            )
        return listed.tasks
