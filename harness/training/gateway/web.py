"""The routes of a gateway: OpenAI's chat completions, Anthropic's messages, rollouts."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from agentgyms.core import serialization
from agentgyms.core.errors import BadOption, BadRequest
from agentgyms.remote.protocol import framing
from agentgyms.serving.cross_site import HOSTS_VARIABLE, OwnNames
from agentgyms.serving.served import EXTENSION, Connected, State, counted
from agentgyms.serving.token_access import TOKEN_HEADERS, Access
from harness.training.gateway import anthropic_messages, chat_requests, openai_replies
from harness.training.gateway.chat_requests import Refused
from harness.training.gateway.gateway import Gateway
from harness.training.gateway.rollout_book import OpenRollout
from harness.types.errors import ConfigError

MAX_BODY_BYTES: Final = 2**24
MAX_CLIENTS: Final = 1024

_PURPOSE: Final = "agentgyms gateway"
_PUBLIC_PATH: Final = "/healthz"

_log = logging.getLogger(__name__)


def create_app(gateway: Gateway, token: str = "", max_body_bytes: int = MAX_BODY_BYTES) -> Flask:
    """Return the application of a gateway.

    An agent names its rollout in the header `X-Rollout-Id`, or in the address: `/rollouts/ID` has
    the same routes. `token` is a bearer token, or the key of Anthropic's clients; "" for none.
    Without one, it answers at addresses, `localhost`, names without a dot, and the names in
    `AGENTGYMS_ALLOWED_HOSTS`. Raises `ConfigError` if no client can send the token.
    """
    app = Flask("harness.training.gateway", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    try:
        access = Access(framing.check_token(token), _PURPOSE, takes_key=True)
    except BadOption as e:
        raise ConfigError(str(e)) from None
    state = State(access, max_body_bytes, Connected(MAX_CLIENTS))
    app.extensions[EXTENSION] = state
    app.wsgi_app = counted(app.wsgi_app, state.count)  # type: ignore[assignment]
    names = OwnNames(os.environ.get(HOSTS_VARIABLE, "").split())
    app.before_request(lambda: _check_access(access, names))
    app.register_error_handler(Exception, _error)
    app.add_url_rule("/healthz", "healthz", lambda: _reply({"status": "ok"}))
    views: dict[str, Callable[..., Response]] = {
        "chat/completions": _view(gateway, openai_replies, lambda body: body),
        "messages": _view(gateway, anthropic_messages, anthropic_messages.as_chat),
    }
    for path, view in views.items():
        for start in ("", "/rollouts/<rollout_id>"):
            app.add_url_rule(f"{start}/v1/{path}", f"{start}{path}", view, methods=["POST"])
    _add_rollouts(app, gateway)
    return app


def _add_rollouts(app: Flask, gateway: Gateway) -> None:
    def models() -> Response:
        listed = {"id": gateway.options.model, "object": "model", "owned_by": "agentgyms"}
        return _reply({"object": "list", "data": [listed]})

    def status() -> Response:
        size = gateway.options.group_size
        return _reply({"step": gateway.weights, "group_size": size, **gateway.book.counts()})

    def begin(rollout_id: str) -> Response:
        found = _rollout(gateway, rollout_id, settle=True)
        return _reply({"rollout_id": found.name, "group_id": found.group})

    def drop(rollout_id: str) -> Response:
        gateway.book.drop(rollout_id)
        return Response(status=204)

    def reward(rollout_id: str) -> Response:
        report = _body()
        if not isinstance(report, dict):
            raise Refused(f"the body must be a JSON object, got {type(report).__name__}")
        return _reply(gateway.reward(rollout_id, report))

    app.add_url_rule("/v1/models", "models", models)
    app.add_url_rule("/v1/rollouts", "status", status)
    app.add_url_rule("/v1/rollouts/<rollout_id>", "begin", begin, methods=["POST"])
    app.add_url_rule("/v1/rollouts/<rollout_id>", "drop", drop, methods=["DELETE"])
    app.add_url_rule("/v1/rollouts/<rollout_id>/reward", "reward", reward, methods=["POST"])


def _view(
    gateway: Gateway, protocol: ModuleType, as_chat: Callable[[Any], Any]
) -> Callable[..., Response]:
    """Return the view that answers requests of a protocol with its `reply` and its `events`."""

    def view(rollout_id: str = "") -> Response:
        asked, model = chat_requests.read(as_chat(_body())), gateway.options.model
        answer = gateway.answer(_rollout(gateway, rollout_id), asked, _has_left())
        if asked.stream:
            events = "".join(protocol.events(answer, asked, model))
            return Response(events, mimetype="text/event-stream")
        return _reply(protocol.reply(answer, model))

    return view


def _rollout(gateway: Gateway, rollout_id: str, *, settle: bool = False) -> OpenRollout:
    names = {kind: request.headers.get(f"X-{kind}-Id", "") for kind in ("Group", "Task", "Session")}
    given = {kind.lower(): name for kind, name in names.items()}
    name = rollout_id or request.headers.get("X-Rollout-Id", "")
    return gateway.book.open(name, settle=settle, **given)


def _has_left() -> Callable[[], bool]:
    left: Callable[[], bool] = request.environ.get("waitress.client_disconnected", lambda: False)
    return left


def _check_access(access: Access, names: OwnNames) -> None:
    """Refuse a request without the token; without one, a page of another site."""
    if request.path == _PUBLIC_PATH:
        return
    mistake = names.mistake(request) if access.is_open else ""
    if mistake:
        raise Refused(mistake, 403)
    if not access.has_token({n: request.environ.get(f"HTTP_{n}", "") for n in TOKEN_HEADERS}):
        raise Refused("the bearer token is missing or wrong", 401, "unauthorized")


def _body() -> Any:
    content = request.get_data(cache=False)
    try:
        value = serialization.loads(content, "body") if content else {}
    except BadRequest as e:
        raise Refused(str(e), 400, "bad_json") from None
    chat_requests.check_plain(value, "body")
    return value


def _error(error: Exception) -> Response:
    if isinstance(error, RequestEntityTooLarge):
        error = Refused("the body is too long", 413, "too_large")
    elif isinstance(error, HTTPException):
        error = Refused(f"{request.method} {request.path:.80}: {error.name}", error.code or 500)
    elif not isinstance(error, Refused):
        _log.error("a request failed", exc_info=error)
        error = Refused(f"{type(error).__name__}: {error!s:.200}", 500, "failed")
    protocol = anthropic_messages if request.path.endswith("/messages") else openai_replies
    return _reply(protocol.error(error), error.status)


def _reply(value: dict[str, Any], status: int = 200) -> Response:
    return Response(serialization.dumps(value), status=status, mimetype="application/json")
