"""Coroutines for threads that wait: one event loop per process, in a thread of its own.

A forked child begins a loop of its own. What it has from its parent, the loop, clients and their
connections, stays as it is there and is never closed: the parent goes on using it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

_T = TypeVar("_T")

_STOP_S: Final = 2.0


class Kept(Protocol):
    """Lives on the loop."""

    def close(self) -> None:
        """Begin to let everything go that it holds."""
        ...


class Bridge:
    """An event loop that runs from its first use until the process ends.

    Attributes:
        kept: What lives on the loop, by whatever key: closed when the process ends, unless before.
    """

    def __init__(self) -> None:
        """Start nothing yet: a process without threads can be forked without a second thought."""
        self.kept: dict[Any, Kept] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = False

    @property
    def started(self) -> bool:
        """The loop runs."""
        return self._loop is not None

    def begin(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Run a coroutine on the loop; cancelling the future cancels it."""
        with lock():
            if self._loop is None:
                self._loop = self._start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, args=(loop,), name="models", daemon=True)
        thread.start()
        atexit.register(self._stop, os.getpid(), loop, thread)
        return loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop, on after a `SystemExit` in it too: the threads that wait need it."""
        while not self._ending:
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()

    def _stop(self, pid: int, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        if os.getpid() != pid:
            return
        with lock():
            for one in self.kept.values():
                one.close()
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_quiet(), loop).result(2 * _STOP_S)
        self._ending = True
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_S)


async def _quiet() -> None:
    """Wait until nothing is under way, but not for long."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        await asyncio.wait(tasks, timeout=_STOP_S)


class _Here:
    """What belongs to this process alone."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.bridge = Bridge()


_here = _Here()
_inherited: list[_Here] = []


def lock() -> threading.RLock:
    """Return the lock under which the bridge and what it keeps are looked at and changed."""
    return _here.lock


def here() -> Bridge:
    """Return the bridge of this process."""
    return _here.bridge


def _begin_anew() -> None:
    """In a forked child: the lock may be held by a thread that is not here, nor is the loop's."""
    global _here
    _inherited.append(_here)
    _here = _Here()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
