"""Limits on connections: idle and stalled ones are closed, threads are reused."""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from waitress.channel import HTTPChannel
from waitress.task import ThreadedTaskDispatcher

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_PROBE_THREADS: Final = 2  # a first /readyz takes as long as an environment takes to be made
MOST_STRANGERS: Final = 256
"""Most connections at a time on which no client has shown the token."""

MOST_HELD_BYTES: Final = 1 << 27
"""Most bytes that all connections on which nothing moves may make the server keep."""

_SILENT_S: Final = 1.0
_CROWDED: Final = 0.9
_ROOMY: Final = 0.8
_FREED_AT_A_TIME: Final = 8
_PAUSE_S: Final = 0.05


class ConnectionLimiter:
    """Closes connections that are stalled, hold too much, or are too many (`most`).

    A request must be complete within `request_s` of its first byte or the connection's beginning,
    and its reply be read within as long. Near the limit, the connections idle longest are closed:
    their clients connect again. `channels` are all the server's open files.
    """

    def __init__(self, channels: Mapping[int, Any], most: int, request_s: float) -> None:
        self._channels, self._most, self._request_s = channels, most, request_s
        self._most_strangers = min(MOST_STRANGERS, most // 2)
        self._begun: WeakKeyDictionary[Any, tuple[Any, float]] = WeakKeyDictionary()

    def close_stalled(self, now: float) -> None:
        """Close connections stalled at `now` (`time.time()`), in the thread that owns them."""
        for connection in self._connections():
            if self._stalls(connection, now):
                connection.drop()

    def write_late(self) -> None:
        """Send the late replies that are due. Called by the same thread."""
        for connection in self._connections():
            connection.write_late()

    def free_memory(self, now: float) -> None:
        """Close the connections that hold much and were silent longest, in the same thread."""
        silent = [c for c in self._connections() if c.held and now - c.last_activity > _SILENT_S]
        held = sum(connection.held for connection in silent)
        for connection in sorted(silent, key=_last_activity):
            if held <= MOST_HELD_BYTES:
                return
            held -= connection.held
            connection.drop()

    def make_room(self) -> None:
        """Close connections where there are too many. Called by the same thread."""
        connections = self._connections()
        strangers = sorted((c for c in connections if not c.known), key=_last_activity)
        for connection in strangers[: max(len(strangers) - self._most_strangers, 0)]:
            connection.drop()
        if len(self._channels) < _CROWDED * self._most:
            return
        self._close_idle(len(self._channels) - int(_ROOMY * self._most))

    def free_files(self) -> None:
        """Close idle connections when no more files may be opened; wait if there are none."""
        if not self._close_idle(_FREED_AT_A_TIME):
            time.sleep(_PAUSE_S)  # the connection that waits would wake up the thread at once

    def _close_idle(self, most: int) -> int:
        """Close the connections idle longest; return their number.

        A new one gets time for its request: else many clients would keep each other out.
        """
        begun = time.time() - _SILENT_S
        idle = [
            c
            for c in self._connections()
            if not (c.requests or c.total_outbufs_len) and c.last_activity < begun
        ]
        idle.sort(key=_last_activity)
        for connection in idle[:most]:
            connection.drop()
        return min(most, len(idle))

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


def _last_activity(connection: Any) -> float:
    return float(connection.last_activity)


class LatestFirst:
    """A condition on a lock, as `threading.Condition`, that wakes the last thread to wait.

    With threads in turn, each would fill its own cache of the C library, and memory would grow for
    thousands of requests. The caller of each method holds the lock.
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._waiting: list[Lock] = []

    def wait(self) -> None:
        """Release the lock and wait until another thread notifies."""
        mine = Lock()
        mine.acquire()
        self._waiting.append(mine)
        self._lock.release()
        try:
            mine.acquire()
        finally:
            self._lock.acquire()

    def notify(self) -> None:
        """Wake one waiting thread."""
        if self._waiting:
            self._waiting.pop().release()

    def notify_all(self) -> None:
        """Wake all waiting threads."""
        while self._waiting:
            self._waiting.pop().release()


class Threads(ThreadedTaskDispatcher):  # type: ignore[misc]  # waitress has no types
    """The threads that answer requests, and two for probes, which are answered when others wait."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.queue_cv = LatestFirst(self.lock)
        self._probes = ThreadedTaskDispatcher()
        self.set_thread_count(count)
        self._probes.set_thread_count(_PROBE_THREADS)

    def add_task(self, task: Any) -> None:
        """Take the next request of a connection, unless a reply is still to be read there."""
        if not task.may_go_on():
            return
        if task.requests and getattr(task.requests[0], "path", "") in PROBES:
            self._probes.add_task(task)
        else:
            super().add_task(task)

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """End all threads, but for those that are still busy after `timeout` seconds."""
        self._probes.shutdown(cancel_pending, timeout)
        return bool(super().shutdown(cancel_pending, timeout))
