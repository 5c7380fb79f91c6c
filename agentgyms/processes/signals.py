"""Work until a signal comes, as programs do it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

from agentgyms.processes import child

_LOOK_S: Final = 1.0
"""A stop is looked at this often even where another library takes the signals' bytes."""


class Stop:
    """A stop that a signal sets and the main thread waits for.

    With a `threading.Event`, the handler could wait for ever for a lock that the main thread holds.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._writer: socket.socket | None = None

    def set(self) -> None:
        """End the wait."""
        self.is_set = True
        if self._writer is not None:
            with suppress(OSError):  # full, so it wakes anyway; or closed after the wait
                self._writer.send(b"\0")

    def wait(self) -> None:
        """Wait in the main thread until it is set."""
        reader, writer = socket.socketpair()
        with reader, writer:
            writer.setblocking(False)
            reader.settimeout(_LOOK_S)
            self._writer = writer
            # A signal just before `recv` does not interrupt it, but has written a byte by then.
            before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
            try:
                while not self.is_set:
                    with suppress(TimeoutError):
                        reader.recv(4096)
            finally:
                signal.set_wakeup_fd(before)


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
    """Work until it ends or a signal comes, and clean up; do not wait for a read that blocks."""
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
