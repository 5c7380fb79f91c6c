"""Work until a signal comes, as programs do it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from agentgyms.processes import child

_LOOK_S: Final = 1.0


def stop_at_signal() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set; a second signal ends this process at once."""
    stop = threading.Event()

    def end(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            leave(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stop


def wait_for(stop: threading.Event) -> None:
    """Wait until an event is set, by a signal too that comes just before the wait begins."""
    while not stop.wait(_LOOK_S):  # Python handles a signal only once the wait is interrupted
        pass


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
    wait_for(stop)
    clean_up()
    if not ended.is_set():
        leave(0)
    if failed:
        raise failed[0]


def leave(status: int) -> None:
    """End this process and its workers at once."""
    child.kill_all()
    os._exit(status)
