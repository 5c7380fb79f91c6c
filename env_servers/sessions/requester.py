"""Whether the client of this thread's request is still there; without a server it always is."""

from __future__ import annotations

import math
from typing import Final

from flask import has_request_context, request

from agentgyms.serving.served import LEFT_FOR_S
from env_servers.sessions.errors import Refusal

GIVEN_UP_AFTER_S: Final = 5.0
"""Work that has begun goes on for as long: a client asks again after two seconds at most."""


def _left_for_s() -> float:
    """Return the seconds since the client has left; below 0 while it waits."""
    if not has_request_context() or LEFT_FOR_S not in request.environ:
        return -math.inf
    return float(request.environ[LEFT_FOR_S]())


def has_left() -> bool:
    """Return whether the client has closed the connection."""
    return _left_for_s() >= 0


def is_gone() -> bool:
    """Return whether the client has left for so long that it will not ask again."""
    return _left_for_s() > GIVEN_UP_AFTER_S


def check() -> None:
    """Raise `Refusal` if the client has left; for use before long work."""
    if has_left():
        raise Refusal("timeout", "the client has left")
