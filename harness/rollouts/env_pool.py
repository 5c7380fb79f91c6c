"""A pool of environment groups, reused from step to step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from agentgyms.core.errors import EnvUnavailable
from agentgyms.core.tasks import TaskSet
from agentgyms.registration import GroupEnv, url_from_environment
from harness.types.errors import ConfigError

_T = TypeVar("_T")


class EnvPool:
    """Groups of environments, made when needed and reused from one training step to the next.

    Environments that wait for something outside this process, such as a server, run in a thread
    each, all others on the event loop itself.

    Args:
        group_size: The number of environments in a group, one for each rollout of a task.
        max_live: The largest number of open environments; one group is always allowed.
        record: Keep each rollout's `recording`.
        **kwargs: The arguments of `gymnasium.make`.

    Attributes:
        parties: The models that take part in the episodes beside the agent, by role.
        data_source: The origin of the tasks, see `TextEnv.data_source`; None before the first one.
        data_version: The version of their data; "" until an environment is made.
        remote: The environments are on a server.
    """

    def __init__(
        self, env_id: str, group_size: int, max_live: int, *, record: bool = False, **kwargs: Any
    ) -> None:
        self.record, self.parties = record, dict[str, str]()
        self.data_source: str | None = None
        self.data_version = ""
        self.env_id, self.group_size, self.kwargs = env_id, group_size, kwargs
        self.max_groups = max(1, max_live // group_size)
        self._free: list[GroupEnv] = []
        self._threads = ThreadPoolExecutor(self.max_groups * group_size, "environment")
        self._capacity: int | None = None  # of the servers; 0 if unlimited, None if not known yet
        self.remote = bool(kwargs.get("url") or url_from_environment(env_id))

    def tasks(self) -> TaskSet:
        """Return the tasks of the environments' split."""
        group = self.take()
        tasks = group.envs[0].tasks
        self.release(group)
        return tasks

    def take(self) -> GroupEnv:
        """Return a group that is not in use; make one if there is none."""
        if self._free:
            return self._free.pop()
        group = GroupEnv(self.env_id, self.group_size, **self.kwargs)
        self.parties = dict(group.envs[0].parties)
        self.data_source = group.envs[0].data_source
        self.data_version = group.envs[0].data_version
        return group

    async def take_async(self) -> GroupEnv:
        """Return a group that is not in use, without blocking other episodes."""
        return await self.call(self.take, blocking=self.remote and not self._free)

    async def max_open_groups(self) -> int:
        """Return how many groups may be open; raise `ConfigError` if servers cannot hold one."""
        if self.remote and self._capacity is None:
            self._capacity = await self._server_capacity()
        capacity = self._capacity or 0
        if 0 < capacity < self.group_size:
            raise ConfigError(
                f"the servers of {self.env_id} hold {capacity} sessions, one group needs "
                f"{self.group_size}: start them with a larger --max-sessions, or start more"
            )
        return min(self.max_groups, capacity // self.group_size or self.max_groups)

    async def _server_capacity(self) -> int | None:
        """Return how many environments all servers together can hold; None if no server answers."""
        from agentgyms.remote import RemoteEnv  # only where there are servers

        def ask() -> int:
            with GroupEnv(self.env_id, 1, **self.kwargs) as alone:
                env = alone.envs[0]
                return env.num_places() if isinstance(env, RemoteEnv) else 0

        try:
            return await self.call(ask, blocking=True)
        except EnvUnavailable:
            return None  # opening a group raises this error again, unless the servers are back

    def release(self, group: GroupEnv) -> None:
        """Put a group back into the pool."""
        self._free.append(group)

    async def call(
        self, work: Callable[[], _T], *, blocking: bool, interrupt: Callable[[], None] | None = None
    ) -> _T:
        """Return `work()`, run in a thread if it is `blocking`.

        A cancelled call waits until the thread has ended, because the thread uses the environment.
        `interrupt` makes the thread end soon.
        """
        if not blocking:
            return work()
        thread = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)
        # The error is marked as seen: after a cancellation, or a second one, nothing waits for it.
        thread.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            if interrupt is not None:
                interrupt()
            await asyncio.wait([thread])
            raise

    def close(self) -> None:
        """Close all environments that are not in use."""
        for group in self._free:
            group.close()
        self._free.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)
