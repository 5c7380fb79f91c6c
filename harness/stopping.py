"""Stopping a run in good order: SIGTERM, SIGINT, and what is left of a step then."""

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

_T = TypeVar("_T")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
GRACE_S: Final = 15.0
"""Episodes under way at the signal may end within so many seconds; schedulers of clusters mostly
leave 30 before they kill."""

_TICK_S: Final = 0.2


class Abandoned(Exception):
    """Episodes under way were given up, because the process is to stop."""


class StopSignal:
    """Remembers a signal that asks the process to stop.

    The first one is noted, for the run to stop where it can go on later; after `grace_s`, episodes
    under way are given up. The second one ends the process at once.

    Args:
        grace_s: Seconds; None gives up nothing.

    Attributes:
        number: Of the signal that came; 0 before one does.
    """

    def __init__(self, grace_s: float | None = GRACE_S) -> None:
        """Listen to nothing yet."""
        self.grace_s, self.number = grace_s, 0
        self._came = 0.0

    @property
    def is_overdue(self) -> bool:
        """Whether episodes under way are to be given up."""
        waited = time.monotonic() - self._came
        return bool(self.number) and self.grace_s is not None and waited >= self.grace_s

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note the signals that come meanwhile; outside the main thread, none can be."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.number:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.number, self._came = number, time.monotonic()
        name = signal.Signals(number).name
        tqdm.write(f"{name}: stopping after this step; a second signal stops at once")

    def run(self, episodes: Coroutine[Any, Any, _T]) -> _T:
        """Return what comes of playing episodes.

        Raises:
            Abandoned: They took too long after a signal; none of them is in use any more.
        """
        return asyncio.run(self._watched(episodes))

    async def _watched(self, episodes: Coroutine[Any, Any, _T]) -> _T:
        playing = asyncio.ensure_future(episodes)
        while not playing.done():
            await asyncio.wait([playing], timeout=_TICK_S)
            if self.is_overdue and not playing.done():
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)
                raise Abandoned
        return playing.result()
