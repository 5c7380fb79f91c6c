"""What can be asked of sessions: the work behind both the single and the batch routes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from agentgyms import error_codes, messages, protocol
from agentgyms.errors import BadRequest
from env_servers.errors import Refusal, code_and_message
from env_servers.service import MAX_BATCH, Service
from env_servers.session import Session

_LONGEST_REQUEST_ID: Final = 64
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
    asked = protocol.read(messages.Create, fields, "request")
    request_id = _checked(asked.request_id)
    return _opened(service, service.sessions.create(asked.kwargs, request_id))


def fork(service: Service, session_id: str, fields: Any) -> dict[str, Any]:
    """Open another session that stands where this one does."""
    asked = protocol.read(messages.Fork, fields, "request")
    request_id = _checked(asked.request_id)
    return _opened(service, service.sessions.fork(session_id, request_id))


def operate(service: Service, operation: str, session_id: str, fields: Any) -> dict[str, Any]:
    """Do an operation of `ON_A_SESSION`."""
    kind, do = ON_A_SESSION[operation]
    asked = protocol.read(kind, fields, "request")
    with service.sessions.use(session_id) as session:
        return protocol.write(do(session, asked))


def batch(service: Service, operation: str, fields: Any) -> dict[str, Any]:
    """Do an operation for every item; an item's error does not stop the others.

    They are done in order; those of environments that wait for something are done at once.

    Raises:
        Refusal: There are too many items.
    """
    items = protocol.read(messages.Batch, fields, "request").items
    if len(items) > MAX_BATCH:
        raise Refusal("too_large", f"the batch has {len(items)} items: at most {MAX_BATCH}")
    work = partial(_batch_item, service, operation)
    if operation in _MAY_WAIT and _all_wait(service, items):
        with ThreadPoolExecutor(min(len(items), _MOST_THREADS), "batch") as pool:
            return {"results": list(pool.map(work, items))}
    return {"results": [work(item) for item in items]}


def _all_wait(service: Service, items: list[Any]) -> bool:
    """Return whether the items are of sessions that wait for something, each of its own."""
    names = [str(item.get("session_id")) for item in items if isinstance(item, dict)]
    apart = 1 < len(names) == len(set(names)) == len(items)
    return apart and all(service.sessions.waits(name) for name in names)


def _batch_item(service: Service, operation: str, item: Any) -> dict[str, Any]:
    try:
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
        protocol.read(messages.Empty, fields, "item")
        service.sessions.close(session_id)
        return {"session_id": session_id, "closed": True}
    except Exception as e:
        code, message = code_and_message(e)
        service.metrics.failed(code)
        return error_codes.body(code, message)


def _opened(service: Service, session: Session) -> dict[str, Any]:
    return protocol.write(
        messages.Opened(
            session_id=session.session_id,
            ttl_s=service.sessions.ttl_s,
            episode=session.episode,
            environment=protocol.describe(session.env),
        )
    )


def _checked(request_id: str) -> str:
    if len(request_id) > _LONGEST_REQUEST_ID:
        raise BadRequest(f"'request_id' must have at most {_LONGEST_REQUEST_ID} characters")
    return request_id
