"""`create_app`: one Flask application that serves any environment of the package."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from flask import Flask, Response, g, request

from agentgyms.remote.protocol import framing
from agentgyms.serving.cross_site import AllowedOrigins, OwnNames
from agentgyms.serving.served import EXTENSION, counted
from env_servers.http.agentgym import agentgym as agentgym_routes
from env_servers.http.routes import root, v1
from env_servers.observability import requests
from env_servers.observability.metrics import Metrics
from env_servers.play.routes import admits_page, play
from env_servers.sessions.env_factory import EnvFactory
from env_servers.sessions.errors import Refusal, to_response
from env_servers.sessions.service import Service, service
from env_servers.sessions.sessions import Sessions

MAX_SESSIONS = 256
TTL_S = 600.0

_PUBLIC_PATHS = ("/healthz", "/readyz")


def create_app(
    env_id: str,
    *,
    token: str | None = None,
    max_sessions: int = MAX_SESSIONS,
    ttl_s: float = TTL_S,
    max_body_bytes: int = framing.MAX_BODY_BYTES,
    hosts: Iterable[str] = (),
    cors_origins: Iterable[str] = (),
    agentgym: bool = False,
    for_owner: bool = False,
    clock: Callable[[], float] = time.monotonic,
    **kwargs: Any,
) -> Flask:
    """Return the application that serves an environment.

    The routes under `/v1` need the token, if there is one. `/healthz`, `/readyz`, `/metrics` and
    `/openapi.json` are open: they tell nothing about episodes.

    Args:
        env_id: See `agentgyms.registration.full_id`.
        token: The bearer token; None takes the variable `AGENTGYMS_TOKEN`, "" needs none.
        max_sessions: Most sessions at a time; more are answered with 429.
        ttl_s: A session unused for as long expires.
        max_body_bytes: Longest request body.
        hosts: Names at which the server answers without a token, beside addresses, `localhost`
            and names without a dot: a page of another site cannot make it answer at its own name.
        cors_origins: Sites whose pages may use this server, such as `https://site.example`.
        agentgym: Whether AgentGym's clients are answered too, under `/v1/agentgym`.
        for_owner: Whether its only client is who started it and may give private arguments.
        clock: A monotonic clock, in seconds; tests pass another.
        **kwargs: Arguments of the environment. Clients' arguments come on top, except for those
            that the environment class calls private, unless `for_owner`.

    Raises:
        BadOption: The id is not that of an agentgyms environment, or no client can send the token.
    """
    app = Flask("env_servers", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    app.url_map.merge_slashes = False  # else //v1/info would be redirected
    factory = EnvFactory(env_id, kwargs, for_owner=for_owner)
    metrics = Metrics(factory.env_id)
    sessions = Sessions(factory, metrics, max_sessions=max_sessions, ttl_s=ttl_s, clock=clock)
    given = os.environ.get(framing.TOKEN_VARIABLE, "") if token is None else token
    secret = framing.check_token(given)
    state = Service(factory, sessions, metrics, token=secret, max_body_bytes=max_body_bytes)
    app.extensions[EXTENSION] = state
    app.wsgi_app = counted(requests.traced(app.wsgi_app), state.count)  # type: ignore[assignment]
    origins = AllowedOrigins(cors_origins)
    app.before_request(partial(_before, OwnNames(hosts), origins))
    app.after_request(partial(_after, origins))
    app.register_error_handler(Exception, to_response)
    app.register_blueprint(root)
    app.register_blueprint(v1)
    app.register_blueprint(play)
    if agentgym:
        app.register_blueprint(agentgym_routes)
    sessions.sweep_forever()
    return app


def _before(names: OwnNames, origins: AllowedOrigins) -> Response | None:
    g.started = time.perf_counter()
    if service().access.is_open and request.path not in _PUBLIC_PATHS:
        mistake = names.mistake(request, may_be_foreign=origins.allow(request))
        if mistake:
            raise Refusal("unauthorized", mistake)
    if origins.is_preflight(request):
        return Response(status=204)
    if request.blueprint != v1.name and not request.path.startswith("/v1"):
        return None
    state, headers = service(), request.headers
    has_token = state.access.bears(headers.get("Authorization", ""))
    if not has_token and not admits_page(request):
        raise Refusal("unauthorized", "the bearer token is missing or wrong")
    if state.draining:
        raise Refusal("draining", "the server is about to stop")
    version = headers.get(framing.PROTOCOL_HEADER, framing.PROTOCOL)
    if version != framing.PROTOCOL:
        raise Refusal(
            "protocol_mismatch",
            f"the client speaks protocol {version!r:.20}, this server {framing.PROTOCOL}",
        )
    return None


def _after(origins: AllowedOrigins, response: Response) -> Response:
    origins.mark(request, response)
    seconds = time.perf_counter() - g.started
    route = request.url_rule.rule if request.url_rule else "unknown"
    metrics = service().metrics
    metrics.answered(request.method, route, response.status_code, seconds)
    if "code" in g:
        metrics.failed(g.code)
    requests.note(route, response.status_code, seconds)
    requests.describe(route, response.status_code)
    response.headers["Server-Timing"] = f"app;dur={seconds * 1000:.3f}"
    response.headers[framing.PROTOCOL_HEADER] = framing.PROTOCOL
    response.headers["Cache-Control"] = "no-store"
    return response
