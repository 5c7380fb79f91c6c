"""The log of requests: failed or slow ones, and all of them at level debug."""

from __future__ import annotations

import logging
from typing import Final

from flask import g, request

from env_servers.observability import logs

SLOW_S: Final = 5.0
"""A request that took more seconds is logged with any status."""

log = logging.getLogger(__name__)


def note(route: str, status: int, seconds: float) -> None:
    """Log the current request if it failed or was slow; `route` is the rule that matched.

    Its body and its path are not logged: they have the agent's actions and the session's id.
    """
    if status < 400 and seconds < SLOW_S and not log.isEnabledFor(logging.DEBUG):
        return
    session_id = (request.view_args or {}).get("session_id")
    extra = logs.fields(
        method=request.method,
        route=route,
        status=status,
        ms=round(seconds * 1000, 1),
        code=g.get("code"),
        session=logs.digest(session_id) if session_id else None,
    )
    log.log(_level(status, seconds), _message(status, seconds), extra=extra)


def _level(status: int, seconds: float) -> int:
    if status >= 500:
        return logging.WARNING
    return logging.INFO if status >= 400 or seconds >= SLOW_S else logging.DEBUG


def _message(status: int, seconds: float) -> str:
    if status >= 400:
        return "request refused" if status < 500 else "request failed"
    return "slow request" if seconds >= SLOW_S else "request"
