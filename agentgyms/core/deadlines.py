"""A time limit for work that grows with arguments, such as generating rooms; servers set it.

Without a limit, work takes as long as it takes: whoever asked for it can interrupt it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Final

from agentgyms.core.abandonment import check_waited_for
from agentgyms.core.errors import BadOption

_end: ContextVar[tuple[float, float]] = ContextVar("end", default=(math.inf, math.inf))
"""When the work of this thread has to end, in seconds of the monotonic clock, and its limit."""


_WAIT_S: Final = 0.2
"""Time after which a wait for a lock checks the limit again, in seconds."""


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


def check_time(what: str) -> None:
    """Check the limit, and that somebody waits for the work; long work calls this now and then.

    Args:
        what: The work, for the error.

    Raises:
        BadOption: The time is up.
        Abandoned: Nobody waits for the result.
    """
    check_waited_for()
    end, seconds = _end.get()
    if time.monotonic() > end:
        raise _too_long(what, seconds)


@contextmanager
def lock_in_time(lock: Lock, what: str) -> Iterator[None]:
    """Hold a lock that another thread may hold while it does the same work; for a `with` block.

    Raises:
        BadOption: The time is up.
        Abandoned: Nobody waits for the result.
    """
    while not lock.acquire(timeout=_WAIT_S):
        check_time(what)
    try:
        yield
    finally:
        lock.release()


def _too_long(what: str, seconds: float) -> BadOption:
    return BadOption(
        f"{what} takes more than {seconds:g} s, the limit for clients: ask for less, or start the "
        "server with these arguments"
    )
