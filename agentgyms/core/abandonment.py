"""Work that is given up because nobody waits for it: the client that wanted it has left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from agentgyms.core.errors import EnvUnavailable

_nobody_waits: ContextVar[Callable[[], bool]] = ContextVar("nobody_waits", default=lambda: False)


class Abandoned(EnvUnavailable):
    """Work was given up because nobody waits for it."""


@contextmanager
def given_up_when(nobody_waits: Callable[[], bool]) -> Iterator[None]:
    """Let the work of this thread be given up; for a `with` block.

    Args:
        nobody_waits: Returns whether the work is in vain.
    """
    token = _nobody_waits.set(nobody_waits)
    try:
        yield
    finally:
        _nobody_waits.reset(token)


def check_waited_for() -> None:
    """Check that somebody waits; long work that can be interrupted calls this now and then.

    Raises:
        Abandoned: Nobody does.
    """
    if _nobody_waits.get()():
        raise Abandoned("nobody waits for the result any more")
