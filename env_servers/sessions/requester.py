"""The client whose request this thread answers: whether it is still there.

The server puts the answer under a key of the request's environment; without it, as in a test
client, nobody ever leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from agentgyms.serving.served import LEFT_FOR_S
from env_servers.sessions.errors import Refusal

GIVEN_UP_AFTER_S: Final = 5.0
"""Work that has begun goes on for as long: a client asks again after two seconds at most."""


def _never() -> float:
    return -math.inf


_left_for_s: ContextVar[Callable[[], float]] = ContextVar("left_for_s", default=_never)


def meet(environ: Mapping[str, Any]) -> None:
    """Take the client in a request's WSGI environment as the one that this thread works for."""
    _left_for_s.set(environ.get(LEFT_FOR_S, _never))


def has_left() -> bool:
    """Return whether the client has closed the connection."""
    return _left_for_s.get()() >= 0


def is_gone() -> bool:
    """Return whether the client has left for so long that it will not ask again."""
    return _left_for_s.get()() > GIVEN_UP_AFTER_S


def check() -> None:
    """Raise `Refusal` if the client has left; for use before long work."""
    if has_left():
        raise Refusal("timeout", "the client has left")
