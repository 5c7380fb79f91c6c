"""Graceful stop of a run at SIGTERM, SIGINT or SIGHUP: after the step, or after a grace period."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar

from tqdm import tqdm

from harness.distributed.parent import has_torchrun

_T = TypeVar("_T")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
GRACE_S: Final = 15.0
"""Seconds that running episodes have to end after a signal; most cluster schedulers wait 30 s
before they kill a process."""

_TICK_S: Final = 0.2


class Abandoned(Exception):
    """Running episodes were cancelled because the process is to stop."""


class StopSignal:
    """Handles SIGTERM, SIGINT and, unless it is ignored as under `nohup`, SIGHUP.

    The first signal is stored, so that the run can stop where it can be resumed. Running episodes
    are cancelled `grace_s` seconds later, never if it is None. The second signal ends the process
    at once. Under `torchrun` it changes nothing: a cluster's scheduler may signal this process and
    `torchrun`, which passes the signal on, and the process ends with `torchrun` anyway. A later
    SIGHUP changes nothing either: when a terminal is closed, the shell and the system send one
    each.

    `number` is that of the signal, 0 before there is one.
    """

    def __init__(self, grace_s: float | None = GRACE_S) -> None:
        self.grace_s, self.number = grace_s, 0
        self._received_at = 0.0

    @property
    def is_overdue(self) -> bool:
        """Whether running episodes are to be cancelled."""
        waited = time.monotonic() - self._received_at
        return bool(self.number) and self.grace_s is not None and waited >= self.grace_s

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals within this context; outside the main thread it does nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        numbers = [one for one in SIGNALS if one != signal.SIGHUP or not ignored]
        before = {number: signal.signal(number, self._handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def take_over(self, other: StopSignal) -> None:
        """Keep the signal that another one has received."""
        self.number, self._received_at = other.number, other._received_at

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.number and (has_torchrun() or number == signal.SIGHUP):
            return
        if self.number:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.number, self._received_at = number, time.monotonic()
        name = signal.Signals(number).name
        tqdm.write(f"{name}: stopping after this step; a second signal stops at once")

    def run(self, episodes: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine of episodes; raise `Abandoned` if they were cancelled after a signal."""
        return asyncio.run(self._run_or_cancel(episodes))

    async def _run_or_cancel(self, episodes: Coroutine[Any, Any, _T]) -> _T:
        playing = asyncio.ensure_future(episodes)
        while not playing.done():
            await asyncio.wait([playing], timeout=_TICK_S)
            if self.is_overdue and not playing.done():
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)
                raise Abandoned
        return playing.result()
