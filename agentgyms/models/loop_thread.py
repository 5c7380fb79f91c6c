"""Runs coroutines for synchronous threads: one event loop per process, in its own thread.

A forked child starts a new loop, and leaves the inherited one to its parent, which still uses it.
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


class Closable(Protocol):
    """A resource that belongs to the loop."""

    def close(self) -> None:
        """Start to release everything it holds; does not wait."""


class LoopThread:
    """An event loop in a thread until the process ends, when its `resources` are closed."""

    def __init__(self) -> None:
        """Start no thread yet: a process without threads can be forked safely."""
        self.resources: dict[Any, Closable] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = False

    @property
    def started(self) -> bool:
        """Whether the loop runs."""
        return self._loop is not None

    def submit(self, work: Coroutine[Any, Any, _T], future: Future[_T] | None = None) -> Future[_T]:
        """Run a coroutine on the loop; cancelling the future cancels it.

        An interrupt may come before this returns: who must cancel even then gives the future.
        """
        result: Future[_T] = Future() if future is None else future
        with lock():
            if self._loop is None:
                self._loop = self._start()
        self._loop.call_soon_threadsafe(_begin, work, result)
        return result

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, args=(loop,), name="models", daemon=True)
        thread.start()
        atexit.register(self._stop, os.getpid(), loop, thread)
        return loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop; continue after a `SystemExit` in it, because threads wait for results."""
        while not self._ending:
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()

    def _stop(self, pid: int, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        # a forked child inherits the hook, but not the thread
        if os.getpid() != pid:
            return
        with lock():
            for one in self.resources.values():
                one.close()
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_wait_for_tasks(), loop).result(2 * _STOP_S)
        self._ending = True
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_S)


def _begin(work: Coroutine[Any, Any, _T], future: Future[_T]) -> None:
    """Run a coroutine as a task of this loop; its end is the future's, and the future's its own."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def finish(task: asyncio.Task[_T]) -> None:
        if task.cancelled():
            future.cancel()
        if not future.set_running_or_notify_cancel():
            return
        error = task.exception()
        if error is None:
            future.set_result(task.result())
        else:
            future.set_exception(error)

    task.add_done_callback(finish)
    # `finish` itself calls this too, then for a task that is done
    future.add_done_callback(lambda _: task.done() or loop.call_soon_threadsafe(task.cancel))


async def _wait_for_tasks() -> None:
    """Wait until all tasks are done, for a short time at most."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        await asyncio.wait(tasks, timeout=_STOP_S)


class _ProcessState:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.loop_thread = LoopThread()


_state = _ProcessState()
_inherited: list[_ProcessState] = []


def lock() -> threading.RLock:
    """Return the lock that guards the loop thread and its resources."""
    return _state.lock


def current() -> LoopThread:
    """Return the loop thread of this process."""
    return _state.loop_thread


def _reset_after_fork() -> None:
    """In a forked child, replace the lock, whose owner may not exist here, and the loop."""
    global _state
    _inherited.append(_state)
    _state = _ProcessState()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
