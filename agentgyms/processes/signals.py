"""Work until a signal comes, as programs do it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

from agentgyms.processes import child

_LOOK_S: Final = 1.0


class Stop:
    """A stop that a signal sets and the main thread waits for.

    No `threading.Event`: a handler that comes while the main thread holds the event's lock would
    wait for that lock for ever.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._told: SimpleQueue[None] = SimpleQueue()  # a handler may put at any time

    def set(self) -> None:
        """End the wait."""
        self.is_set = True
        self._told.put(None)

    def wait(self) -> None:
        """Wait until it is set, by a signal too that comes just before the wait begins."""
        while not self.is_set:
            with suppress(Empty):  # Python handles a signal only once the wait is interrupted
                self._told.get(timeout=_LOOK_S)


def stop_at_signal() -> Stop:
    """Return a stop that SIGTERM and SIGINT set; a second signal ends this process at once."""
    stop = Stop()

    def end(number: int, _frame: FrameType | None) -> None:
        if stop.is_set:
            leave(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stop


def run_until_signal(work: Callable[[], object], clean_up: Callable[[], object]) -> None:
    """Work until it ends or a signal comes, and clean up.

    After a signal the process ends, whatever the work waits for: a read of standard input, which
    nothing ends, is left behind.
    """
    stop, failed = stop_at_signal(), []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            failed.append(e)
        finally:
            ended.set()
            stop.set()

    ended = threading.Event()
    threading.Thread(target=run, name="work", daemon=True).start()
    stop.wait()
    clean_up()
    if not ended.is_set():
        leave(0)
    if failed:
        raise failed[0]


def leave(status: int) -> None:
    """End this process and its workers at once."""
    child.kill_all()
    os._exit(status)
