"""The listener of `agentgyms mcp --http`: one route, behind the checks of every listener."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from agentgyms.core import imports, serialization
from agentgyms.remote.protocol import framing

try:
    from flask import Flask, Response, request
    from werkzeug.exceptions import HTTPException

    from agentgyms.serving.until_signal import serve
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(imports.missing(e.name or "flask", "mcp"), name=e.name) from e

from agentgyms.serving.addresses import check_reach
from agentgyms.serving.asgi_bridge import AsgiApp, AsgiBridge, Gone
from agentgyms.serving.cross_site import OwnNames
from agentgyms.serving.served import EXTENSION, Connected, State, counted
from agentgyms.serving.token_access import Access

PATH: Final = "/mcp"
TOKEN_VARIABLE: Final = "AGENTGYMS_MCP_TOKEN"  # noqa: S105
MAX_BODY_BYTES: Final = 2**22
MAX_CLIENTS: Final = 1024

_PURPOSE: Final = "agentgyms mcp"
_PUBLIC_PATH: Final = "/healthz"
_INVALID: Final = -32600  # as JSON-RPC numbers it
_FAILED: Final = -32603
_THREADS: Final = 64
_GRACE_S: Final = 8.0
_LEFT: Final = "waitress.client_disconnected"

log = logging.getLogger(__name__)


class Refused(Exception):
    """A request is refused before the protocol sees it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def create_app(bridge: AsgiBridge, token: str = "", hosts: Iterable[str] = ()) -> Flask:
    """Return the application that hands requests for `/mcp` on to the protocol's.

    Without a `token` it answers at addresses, `localhost`, names without a dot, and `hosts`. It
    keeps no sessions, so that none has to expire: each request is one of its own. Raises
    `BadOption` if no client can send the token.
    """
    app = Flask("agentgyms.adapters.mcp_http", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    state = State(
        Access(framing.check_token(token), _PURPOSE), MAX_BODY_BYTES, Connected(MAX_CLIENTS)
    )
    app.extensions[EXTENSION] = state
    app.wsgi_app = counted(app.wsgi_app, state.count)  # type: ignore[assignment]
    names = OwnNames(hosts)
    app.before_request(lambda: _check_access(state, names))
    app.register_error_handler(Exception, _error)
    app.add_url_rule(_PUBLIC_PATH, "healthz", lambda: _reply({"status": "ok"}))

    def answer() -> Response:
        left: Callable[[], bool] = request.environ.get(_LEFT, lambda: False)
        sent = request.get_data(cache=False)
        made = bridge.ask(request.method, PATH, request.headers.items(), sent, left)
        return Response(made.body, made.status, made.headers)

    app.add_url_rule(PATH, "mcp", answer, methods=["POST"])
    return app


def serve_http(
    asgi: AsgiApp, address: tuple[str, int], token: str = "", hosts: Iterable[str] = ()
) -> None:
    """Serve until a signal; `BadOption` if other machines could connect without a token."""
    host, port = address
    check_reach(host, token, TOKEN_VARIABLE)
    bridge = AsgiBridge(asgi)
    try:
        app = create_app(bridge, token, hosts)
        serve(app, host, port, _THREADS, greeting=f"tools at {{}}{PATH}".format, grace_s=_GRACE_S)
    finally:
        bridge.close()


def _check_access(state: State[Any], names: OwnNames) -> None:
    """Refuse a request without the token; without one, a page of another site."""
    if request.path == _PUBLIC_PATH:
        return
    mistake = names.mistake(request) if state.access.is_open else ""
    if mistake:
        raise Refused(403, mistake)
    if not state.access.bears(request.headers.get("Authorization", "")):
        raise Refused(401, "the bearer token is missing or wrong")
    if state.draining:
        raise Refused(503, "the server is about to stop")


def _error(error: Exception) -> Response:
    code, headers = _INVALID, None
    if isinstance(error, HTTPException):
        status, words = error.code or 500, error.name
        headers = [(k, v) for k, v in error.get_headers() if k == "Allow"]
    elif isinstance(error, Refused):
        status, words = error.status, str(error)
    elif isinstance(error, Gone):
        status, words = 499, "the client has left"
    else:
        log.error("a request failed", exc_info=error)
        status, words, code = 500, type(error).__name__, _FAILED
    value = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}}
    made = _reply(value, status)
    made.headers.extend(headers or ())
    return made


def _reply(value: dict[str, Any], status: int = 200) -> Response:
    return Response(serialization.dumps(value), status=status, mimetype="application/json")
