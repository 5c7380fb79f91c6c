"""Each request in the log, if it failed or was slow, and as a span of OpenTelemetry."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from flask import g, request

from agentgyms.core import tracing
from env_servers.observability import logs

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

SLOW_S: Final = 5.0
"""A request that took more seconds is logged with any status."""

_PARENT: Final = {"traceparent": "HTTP_TRACEPARENT", "tracestate": "HTTP_TRACESTATE"}

log = logging.getLogger(__name__)


def note(route: str, status: int, seconds: float) -> None:
    """Log a failed or slow request without body and path, which hold action and session id."""
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


def traced(app: WSGIApplication) -> WSGIApplication:
    """Return the application with a span for each request; the client's span is its parent."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        carrier = {name: environ[key] for name, key in _PARENT.items() if key in environ}
        with tracing.span(method, {"http.request.method": method}, "server", carrier=carrier):
            return app(environ, start_response)

    return answer


def describe(route: str, status: int) -> None:
    """Describe the current request's span by its route's rule: its path has the session's id."""
    span = tracing.current()
    span.set(
        {"http.route": route, "http.response.status_code": status}, f"{request.method} {route}"
    )
    if status >= 500:
        span.fail(g.get("code") or str(status))
