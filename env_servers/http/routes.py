"""The routes: what comes in as HTTP, done by `operations`, and goes out as HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from agentgyms.core import serialization
from agentgyms.core.errors import BadRequest
from agentgyms.remote.protocol import framing, messages
from env_servers.http import operations
from env_servers.http.openapi.document import document_text
from env_servers.sessions import task_pages
from env_servers.sessions.errors import Refusal
from env_servers.sessions.service import service

root = Blueprint("root", __name__)
v1 = Blueprint("v1", __name__, url_prefix="/v1")


@root.get("/healthz")
def healthz() -> Response:
    """Say that the process answers."""
    return json_reply({"status": "ok"})


@root.get("/readyz")
def readyz() -> Response:
    """Say whether an environment can be made and reset here."""
    if not service().ready():
        raise Refusal("not_ready", "the server is starting or stopping")
    return json_reply({"status": "ready"})


@root.get("/metrics")
def metrics() -> Response:
    """Give the figures that Prometheus collects."""
    figures = service().metrics
    return Response(figures.exposition(), content_type=figures.content_type)


@root.get("/openapi.json")
def openapi() -> Response:
    """Give the description of these routes."""
    text = document_text(asks_for_token=not service().access.is_open)
    return Response(text, mimetype="application/json")


@v1.get("/info")
def info() -> Response:
    """Say what is served here."""
    return json_reply(framing.write(service().info()))


@v1.get("/tasks")
def tasks() -> Response:
    """List tasks of a split, with the server's own arguments."""
    wanted = task_pages.read(request.args.to_dict(flat=False))
    found = service().factory.tasks(wanted.split)
    return json_reply(framing.write(task_pages.page(found, wanted)))


@v1.post("/sessions")
def create() -> Response:
    """Open a session."""
    return json_reply(operations.unclaim(service(), operations.create(service(), read_body())), 201)


@v1.get("/sessions/<session_id>")
def state(session_id: str) -> Response:
    """Say where a session stands."""
    sessions = service().sessions
    with sessions.use(session_id) as session:
        return json_reply(framing.write(session.state(sessions.ttl_s)))


@v1.delete("/sessions/<session_id>")
def close(session_id: str) -> Response:
    """Close a session."""
    service().sessions.close(session_id)
    return Response(status=204)


@v1.post("/sessions/<session_id>/fork")
def fork(session_id: str) -> Response:
    """Open another session that stands where this one does."""
    forked = operations.fork(service(), session_id, read_body())
    return json_reply(operations.unclaim(service(), forked), 201)


@v1.get("/sessions/<session_id>/render")
def render(session_id: str) -> Response:
    """Give what the environment renders."""
    with service().sessions.use(session_id) as session:
        return json_reply(framing.write(session.render()))


@v1.get("/sessions/<session_id>/tasks")
def session_tasks(session_id: str) -> Response:
    """List tasks of the session's split, with the session's arguments."""
    wanted = task_pages.read(request.args.to_dict(flat=False))
    with service().sessions.use(session_id) as session:
        found = session.tasks(wanted.split)
    return json_reply(framing.write(task_pages.page(found, wanted)))


@v1.get("/sessions/<session_id>/trajectory")
def trajectory(session_id: str) -> Response:
    """Give the episode so far as a recording, which `agentgyms replay` verifies."""
    wanted = framing.read(messages.Trajectory, request.args.to_dict(), "query")
    if len(wanted.actor) > messages.MAX_ACTOR:
        raise BadRequest(f"'actor' in the query must have at most {messages.MAX_ACTOR} characters")
    with service().sessions.use(session_id) as session:
        text = session.recording(service().factory.env_id, wanted.actor)
    return Response(text, mimetype="application/jsonl")


def _session_view(operation: str) -> Callable[[str], Response]:
    return lambda session_id: json_reply(
        operations.operate(service(), operation, session_id, read_body())
    )


def _batch_view(operation: str) -> Callable[[], Response]:
    def view() -> Response:
        done = operations.batch(service(), operation, read_body())
        return json_reply(operations.unclaim(service(), done) if operation == "create" else done)

    return view


for _name in operations.ON_A_SESSION:
    v1.add_url_rule(
        f"/sessions/<session_id>/{_name}", _name, _session_view(_name), methods=["POST"]
    )
for _name in operations.IN_BATCHES:
    v1.add_url_rule(f"/batch/{_name}", f"batch_{_name}", _batch_view(_name), methods=["POST"])


def read_body() -> Any:
    """Return the request's JSON value, {} without one; `Refusal` if it is too long or no JSON."""
    try:
        content = request.get_data(cache=False)
    except RequestEntityTooLarge:
        limit = service().max_body_bytes
        raise Refusal("too_large", f"the body is longer than {limit} bytes") from None
    if not content:
        return {}
    if request.mimetype != "application/json":
        given = request.mimetype or "none"
        raise Refusal(
            "unsupported_media_type", f"the content type is {given}: expected application/json"
        )
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Refusal("unsupported_media_type", "the body is compressed: send it as it is")
    try:
        return serialization.loads(content, "request body")
    except BadRequest as e:
        raise Refusal("bad_json", str(e)) from None


def json_reply(value: Any, status: int = 200) -> Response:
    """Return a response with a value as JSON."""
    return Response(serialization.dumps(value), status=status, mimetype="application/json")
