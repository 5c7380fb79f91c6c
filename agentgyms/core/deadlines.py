"""Ends work that grows with arguments at a server's time limit, or when its client has left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Final

from agentgyms.core.errors import BadOption, EnvUnavailable

_end: ContextVar[tuple[float, float]] = ContextVar("end", default=(math.inf, math.inf))
"""When the work of this thread has to end, in seconds of the monotonic clock, and its limit."""

_nobody_waits: ContextVar[Callable[[], bool]] = ContextVar("nobody_waits", default=lambda: False)

_WAIT_S: Final = 0.2
"""Time after which a wait for a lock checks the limit again, in seconds."""


class Abandoned(EnvUnavailable):
    """Work was given up because nobody waits for it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the work of this thread; for a `with` block. An outer limit that ends sooner holds."""
    if seconds == math.inf:
        yield
        return
    token = _end.set(min(_end.get(), (time.monotonic() + seconds, seconds)))
    try:
        yield
    finally:
        _end.reset(token)


@contextmanager
def given_up_when(nobody_waits: Callable[[], bool]) -> Iterator[None]:
    """Let this thread's work be abandoned once `nobody_waits()` is true; for a `with` block."""
    token = _nobody_waits.set(nobody_waits)
    try:
        yield
    finally:
        _nobody_waits.reset(token)


def check_waited_for() -> None:
    """Raise `Abandoned` if nobody waits; long work that can be stopped calls this now and then."""
    if _nobody_waits.get()():
        raise Abandoned("nobody waits for the result any more")


def check_time(what: str) -> None:
    """Raise `BadOption` if the time is up, `Abandoned` if nobody waits; long work calls this."""
    check_waited_for()
    end, seconds = _end.get()
    if time.monotonic() > end:
        raise BadOption(
            f"{what} takes more than {seconds:g} s, the limit for clients: ask for less, or start "
            "the server with these arguments"
        )


@contextmanager
def lock_in_time(lock: Lock, what: str) -> Iterator[None]:
    """Hold a lock that another thread may hold for the same work; raise as `check_time`."""
    while not lock.acquire(timeout=_WAIT_S):
        check_time(what)
    try:
        yield
    finally:
        lock.release()
