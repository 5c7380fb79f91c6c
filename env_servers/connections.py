"""What connections may keep of a server: places and memory go to those who use them."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from waitress.channel import HTTPChannel
from waitress.task import ThreadedTaskDispatcher

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_PROBE_THREADS: Final = 2  # a first /readyz takes as long as an environment takes to be made
_CROWDED: Final = 0.9
_ROOMY: Final = 0.8


class Doorkeeper:
    """Closes connections that keep others out.

    A request holds no thread before all of it is there, but its connection holds a place. One that
    is not complete within `request_s` is closed, and so is a reply that nobody reads for as long.
    Where places become few, the connections that were idle longest are closed: their clients
    connect again when they have something to say.

    Args:
        channels: The server's open files, its connections among them.
        most: How many there may be.
        request_s: Seconds for a request to come in, from its first byte or from the connection's
            beginning.
    """

    def __init__(self, channels: Mapping[int, Any], most: int, request_s: float) -> None:
        self._channels, self._most, self._request_s = channels, most, request_s
        self._begun: WeakKeyDictionary[Any, tuple[Any, float]] = WeakKeyDictionary()

    def close_stalled(self, now: float) -> None:
        """Close what does not go on. Called by the thread that owns the connections.

        Args:
            now: As `time.time()` tells it.
        """
        for connection in self._connections():
            connection.will_close |= self._stalls(connection, now)

    def make_room(self) -> None:
        """Close what was idle longest where places become few. Called by the same thread."""
        if len(self._channels) < _CROWDED * self._most:
            return
        idle = [c for c in self._connections() if not (c.requests or c.total_outbufs_len)]
        idle.sort(key=lambda connection: connection.last_activity)
        for connection in idle[: len(self._channels) - int(_ROOMY * self._most)]:
            connection.will_close = True

    def _connections(self) -> list[Any]:
        return [c for c in list(self._channels.values()) if isinstance(c, HTTPChannel)]

    def _stalls(self, connection: Any, now: float) -> bool:
        if connection.total_outbufs_len:
            return bool(now - connection.last_activity > self._request_s)
        if connection.requests:
            return False
        if connection.last_activity == connection.creation_time:
            return bool(now - connection.creation_time > self._request_s)
        coming = connection.request
        if coming is None:
            return False
        known, since = self._begun.get(connection, (None, now))
        if known is not coming:
            self._begun[connection] = (coming, now)
            return False
        return now - since > self._request_s


class LatestFirst:
    """A condition on a lock, as `threading.Condition`, that wakes who began to wait last.

    So as few threads work as there is work for. Were they to take turns, each would fill the cache
    that the C library keeps for it, and a server's memory would grow for thousands of requests.

    Args:
        lock: Held by whoever calls a method.
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._waiting: list[Lock] = []

    def wait(self) -> None:
        """Let go of the lock until somebody notifies."""
        mine = Lock()
        mine.acquire()
        self._waiting.append(mine)
        self._lock.release()
        try:
            mine.acquire()
        finally:
            self._lock.acquire()

    def notify(self) -> None:
        """Wake one that waits."""
        if self._waiting:
            self._waiting.pop().release()

    def notify_all(self) -> None:
        """Wake all that wait."""
        while self._waiting:
            self._waiting.pop().release()


class Threads(ThreadedTaskDispatcher):  # type: ignore[misc]  # waitress has no types
    """The threads that answer requests, and two for probes, which are answered when others wait.

    Args:
        count: How many threads there are for what is not a probe.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.queue_cv = LatestFirst(self.lock)
        self._probes = ThreadedTaskDispatcher()
        self.set_thread_count(count)
        self._probes.set_thread_count(_PROBE_THREADS)

    def add_task(self, task: Any) -> None:
        """Take the next request of a connection."""
        if task.requests and getattr(task.requests[0], "path", "") in PROBES:
            self._probes.add_task(task)
        else:
            super().add_task(task)

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """End all threads, but for those that are still busy after `timeout` seconds."""
        self._probes.shutdown(cancel_pending, timeout)
        return bool(super().shutdown(cancel_pending, timeout))
