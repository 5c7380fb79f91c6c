"""The application of the search server: the requests of Search-R1 and of SkyRL, one route."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from flask import Flask, Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from agentgyms.core import serialization
from agentgyms.core.errors import BadRequest
from agentgyms.envs.searchqa.http_retriever import TOKEN_VARIABLE
from agentgyms.envs.searchqa.retriever import MOST_DOCUMENTS, Hit, Retriever
from agentgyms.remote.protocol import framing
from agentgyms.serving.cross_site import OwnNames
from agentgyms.serving.served import EXTENSION, Connected, State, counted
from agentgyms.serving.token_access import Access
from env_servers.sessions.errors import Refusal, to_response

DEFAULT_TOP_K: Final = 3
MOST_QUERIES: Final = 1024
MAX_CLIENTS: Final = 2048

_PURPOSE: Final = "agentgyms search"

_ROUTE: Final = (
    'POST /retrieve takes {"queries": [...]} or {"query": "..."}, and "topk", "return_scores".'
)
_HINTS: Final = {
    "bad_json": _ROUTE,
    "bad_request": _ROUTE,
    "not_found": f"{_ROUTE} GET /healthz says that the server answers.",
    "method_not_allowed": _ROUTE,
    "too_large": "Ask fewer queries at a time.",
    "unauthorized": f"Set {TOKEN_VARIABLE} to the token of this server.",
}
"""Hints on errors, where those of the servers of environments do not fit."""


def create_retriever_app(
    retriever: Retriever,
    *,
    token: str = "",
    max_body_bytes: int = framing.MAX_BODY_BYTES,
    max_clients: int = MAX_CLIENTS,
    hosts: Iterable[str] = (),
) -> Flask:
    """Return the application that searches with `retriever`, which many threads share.

    `POST /retrieve` answers `{"queries": [...], "topk": 3, "return_scores": true}`, as Search-R1's
    server does, and `{"query": "...", ...}`, as that of SkyRL and verl-agent: `{"result": [...]}`
    with one list for each query, of `{"document": {"id", "contents"}, "score"}`, or without
    `return_scores` of documents alone. `GET /healthz` answers as long as the process does.

    At most `max_clients` keep a connection. For `token`, `hosts` and `BadOption` see `create_app`.
    """
    app = Flask("env_servers.retriever", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    access = Access(framing.check_token(token), _PURPOSE)
    state = State(access, max_body_bytes, Connected(max_clients))
    app.extensions[EXTENSION] = state
    app.wsgi_app = counted(app.wsgi_app, state.count)  # type: ignore[assignment]
    app.register_error_handler(Exception, _error)
    app.add_url_rule("/healthz", "healthz", lambda: _reply({"status": "ok"}))
    view = _search_view(retriever, state, OwnNames(hosts))
    app.add_url_rule("/retrieve", "retrieve", view, methods=["POST"])
    return app


def _search_view(
    retriever: Retriever, state: State[Connected], names: OwnNames
) -> Callable[[], Response]:
    def retrieve() -> Response:
        mistake = names.mistake(request) if state.access.is_open else ""
        if mistake:
            raise Refusal("unauthorized", mistake)
        if not state.access.bears(request.headers.get("Authorization", "")):
            raise Refusal("unauthorized", "the bearer token is missing or wrong")
        if state.draining:
            raise Refusal("draining", "the server is about to stop")
        queries, top_k, scored = _read(_body())
        found = [retriever.search(query, top_k) for query in queries]
        return _reply({"result": [[_row(hit, scored) for hit in hits] for hits in found]})

    return retrieve


def _body() -> dict[str, Any]:
    """Return the request's JSON object, whatever its Content-Type says."""
    try:
        text = request.get_data(cache=False)
    except RequestEntityTooLarge:
        raise Refusal("too_large", "the body is too long: ask fewer queries at a time") from None
    try:
        body = serialization.loads(text, "body")
    except BadRequest as e:
        raise Refusal("bad_json", str(e)) from None
    if not isinstance(body, dict):
        raise Refusal("bad_json", f"the body must be a JSON object, got {body!r:.60}")
    return body


def _read(body: dict[str, Any]) -> tuple[list[str], int, bool]:
    """Return queries, number of documents and whether scores are wanted, or raise `BadRequest`."""
    if ("queries" in body) == ("query" in body):
        raise BadRequest("expected either 'queries', a list of texts, or 'query', a text")
    queries = body["queries"] if "queries" in body else [body["query"]]
    if not isinstance(queries, list) or any(type(query) is not str for query in queries):
        raise BadRequest(f"queries must be texts, got {queries!r:.80}")
    if len(queries) > MOST_QUERIES:
        raise BadRequest(f"{len(queries)} queries at a time are too many: at most {MOST_QUERIES}")
    top_k, scored = body.get("topk"), body.get("return_scores", False)
    top_k = DEFAULT_TOP_K if top_k is None else top_k
    if type(top_k) is not int or not 1 <= top_k <= MOST_DOCUMENTS:
        raise BadRequest(f"topk must be an integer from 1 to {MOST_DOCUMENTS}, got {top_k!r:.40}")
    if type(scored) is not bool:
        raise BadRequest(f"return_scores must be true or false, got {scored!r:.40}")
    return queries, top_k, scored


def _row(hit: Hit, scored: bool) -> dict[str, Any]:
    document = {"id": hit.document.doc_id, "contents": hit.document.contents}
    return (
        {"document": document, "score": serialization.encode_number(hit.score)}
        if scored
        else document
    )


def _error(error: Exception) -> Response:
    """Return the response for an exception, with a hint that is right for this server."""
    response = to_response(error)
    body = serialization.loads(response.get_data(), "error")
    error_fields = body["error"]
    error_fields["hint"] = _HINTS.get(error_fields["code"], error_fields["hint"])
    response.set_data(serialization.dumps(body))
    return response


def _reply(value: dict[str, Any]) -> Response:
    return Response(serialization.dumps(value), mimetype="application/json")
