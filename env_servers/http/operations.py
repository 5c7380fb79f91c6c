"""The operations on sessions, for single requests and for batches."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final

from agentgyms.core.errors import BadRequest
from agentgyms.remote.protocol import error_codes, framing, messages
from env_servers.sessions import requester
from env_servers.sessions.errors import Refusal, code_and_message
from env_servers.sessions.service import Service
from env_servers.sessions.session import Session

_MOST_THREADS: Final = 32
_MAY_WAIT: Final = ("reset", "step")

ON_A_SESSION: Final[dict[str, tuple[type[Any], Callable[[Session, Any], Any]]]] = {
    "reset": (messages.Reset, Session.reset),
    "step": (messages.Step, Session.step),
    "restore": (messages.Restore, Session.restore),
    "snapshot": (messages.Empty, lambda session, _: session.snapshot()),
}
"""Operations that a session's own route names: the request's kind, and what is done."""

IN_BATCHES: Final = ("create", "reset", "step", "close")
"""Operations of which one request can ask for many."""


def create(service: Service, fields: Any) -> dict[str, Any]:
    """Open a session."""
    message = framing.read(messages.Create, fields, "request")
    request_id = _checked_request_id(message.request_id)
    return _opened(service, service.sessions.create(message.kwargs, request_id))


def fork(service: Service, session_id: str, fields: Any) -> dict[str, Any]:
    """Open another session in the same state."""
    message = framing.read(messages.Fork, fields, "request")
    request_id = _checked_request_id(message.request_id)
    return _opened(service, service.sessions.fork(session_id, request_id))


def operate(service: Service, operation: str, session_id: str, fields: Any) -> dict[str, Any]:
    """Do an operation of `ON_A_SESSION`."""
    kind, do = ON_A_SESSION[operation]
    message = framing.read(kind, fields, "request")
    with service.sessions.use(session_id) as session:
        return framing.write(do(session, message))


def batch(service: Service, operation: str, fields: Any) -> dict[str, Any]:
    """Do an operation for every item, in order; an item's error does not stop the others.

    Items of environments that wait for something are done at once. Raises `Refusal` for too many.
    """
    items = framing.read(messages.Batch, fields, "request").items
    if len(items) > messages.MAX_BATCH:
        raise Refusal(
            "too_large", f"the batch has {len(items)} items: at most {messages.MAX_BATCH}"
        )
    work = partial(_batch_item, service, operation)
    if operation in _MAY_WAIT and _all_wait(service, items):
        contexts = [copy_context() for _ in items]
        with ThreadPoolExecutor(min(len(items), _MOST_THREADS), "batch") as pool:
            return {"results": list(pool.map(lambda c, item: c.run(work, item), contexts, items))}
    return {"results": [work(item) for item in items]}


def unclaim(service: Service, reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply with the sessions that were opened; if the client has left, they end soon."""
    if requester.has_left():
        opened = reply.get("results", [reply])
        service.sessions.unclaim([result.get("session_id", "") for result in opened])
    return reply


def _all_wait(service: Service, items: list[Any]) -> bool:
    """Return whether each item has a session of its own, and all of them wait for something."""
    names = [str(item.get("session_id")) for item in items if isinstance(item, dict)]
    apart = 1 < len(names) == len(set(names)) == len(items)
    return apart and all(service.sessions.waits(name) for name in names)


def _batch_item(service: Service, operation: str, item: Any) -> dict[str, Any]:
    try:
        if operation != "close":  # who leaves for good says so and does not wait
            requester.check()
        if not isinstance(item, dict):
            raise BadRequest("an item of 'items' must be an object")
        if operation == "create":
            return create(service, item)
        fields = dict(item)
        session_id = fields.pop("session_id", None)
        if not isinstance(session_id, str):
            raise BadRequest("the item has no field 'session_id' (a string)")
        if operation != "close":
            return operate(service, operation, session_id, fields)
        framing.read(messages.Empty, fields, "item")
        service.sessions.close(session_id)
        return {"session_id": session_id, "closed": True}
    except Exception as e:
        code, message = code_and_message(e)
        service.metrics.failed(code)
        return error_codes.body(code, message)


def _opened(service: Service, session: Session) -> dict[str, Any]:
    return framing.write(
        messages.Opened(
            session_id=session.session_id,
            ttl_s=service.sessions.ttl_s,
            episode=session.episode,
            environment=framing.describe(session.env),
        )
    )


def _checked_request_id(request_id: str) -> str:
    if len(request_id) > messages.MAX_REQUEST_ID:
        raise BadRequest(f"'request_id' must have at most {messages.MAX_REQUEST_ID} characters")
    return request_id
