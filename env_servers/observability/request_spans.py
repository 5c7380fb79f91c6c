"""A span of OpenTelemetry for each request; see `agentgyms.tracing`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import g, request

from agentgyms import tracing

_PARENT: Final = {"traceparent": "HTTP_TRACEPARENT", "tracestate": "HTTP_TRACESTATE"}


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
