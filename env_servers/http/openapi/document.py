"""The OpenAPI document: the routes, their messages, and the errors that they answer with."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any, Final

from agentgyms.core import serialization
from agentgyms.remote.protocol import error_codes, framing, messages
from env_servers.http.openapi import page
from env_servers.http.openapi.json_schema import (
    Schema,
    object_of,
    properties_of,
    reference,
    request_of,
    value_schemas,
)
from env_servers.http.openapi.routes import OPERATIONS, SESSION_ID, Operation

_ABOUT: Final = """\
One environment, many sessions. Open a session, reset it, take turns, and delete it; one that is \
not used expires.

Every request may be sent again: `turn` numbers the steps of an episode, and a turn that was taken \
is not taken twice but answered with the stored reply; `request_id` does the same for new \
sessions, `episode` for resets. A session id is the right to use the session, so keep it to \
yourself: all who know the token and the id share the session.

Numbers that JSON cannot hold travel as null. Errors have a status, a code and a hint; where \
`retryable` is true the same request may succeed later. What is no proper HTTP, or far too long, \
is answered in plain text (400, 413, 431, 501) and the connection closed; so is a request that is \
not complete within a minute. Unknown fields are refused, so that a misspelt one is noticed; \
replies may get more fields in later versions."""


_FAILURES: Final = {
    400: "The request cannot be read, or is of another protocol.",
    401: "The token is missing or wrong.",
    404: "There is no such session, or no such route.",
    409: "The session or its episode does not stand where the request says, or another request had "
    "this request_id.",
    410: "The session was closed or has expired.",
    413: "The body, or the batch, is longer than the limits in `/v1/info`.",
    415: "The body is not JSON, or is compressed.",
    422: "The request can be read, but a value in it cannot be used; the message says which one.",
    429: "The server holds as many sessions as it may.",
    500: "An unexpected error. The server logs it; the message has the id of the log line.",
    503: "Data, a package, a model or an engine is missing or lost, or the server starts or stops.",
    504: "Another request keeps the session in use.",
}
_TAGS: Final = {
    "sessions": "One client's environment.",
    "batch": "One request for many sessions; one result or one error per item.",
    "server": "What is served here, and how it is.",
    "page": "A page on which a person plays.",
}
_SECURITY_SCHEMES: Final = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": f"The server's {framing.TOKEN_VARIABLE}. A server without a token lets "
        "everybody in.",
    },
    "page": {
        "type": "apiKey",
        "in": "cookie",
        "name": "agentgyms_play_8000",
        "description": "Set by POST /play for the page; its name ends in the server's port. It "
        "counts only beside the header of the protocol, which no other site can make a browser "
        "send.",
    },
    "pageHeader": {
        "type": "apiKey",
        "in": "header",
        "name": framing.PROTOCOL_HEADER,
        "description": f"The protocol's version, {framing.PROTOCOL}.",
    },
}
_PARAMETERS: Final = {
    "SessionId": {
        "name": "session_id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
        "description": "As in the reply that opened the session.",
        "example": SESSION_ID,
    },
    "Protocol": {
        "name": framing.PROTOCOL_HEADER,
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "The version of the protocol that the client speaks; another one than that "
        "of the server is refused. Without it nothing is checked.",
        "example": framing.PROTOCOL,
    },
}


@cache
def document_text(*, asks_for_token: bool = True) -> str:
    """Return the document as JSON, built once; without a token it names no way to authenticate."""
    return serialization.dumps(document() if asks_for_token else _without_security(document()))


def _without_security(described: dict[str, Any]) -> dict[str, Any]:
    """Return the document without what clients must send to be let in."""
    open_paths = {
        path: {method: _without(operation, "security") for method, operation in methods.items()}
        for path, methods in described["paths"].items()
    }
    components = _without(described["components"], "securitySchemes")
    return _without(described, "security") | {"paths": open_paths, "components": components}


def _without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


def document() -> dict[str, Any]:
    """Return the OpenAPI document of a server of environments that asks for a token."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agentgyms environment server",
            "summary": "Text environments for language agents behind one interface.",
            "description": _ABOUT,
            "version": framing.PROTOCOL,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}, {"page": [], "pageHeader": []}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths | page.paths(),
        "components": {
            "securitySchemes": _SECURITY_SCHEMES,
            "responses": {_name(status): _error(status) for status in _FAILURES},
            "schemas": _schemas(),
            "parameters": _PARAMETERS,
            "headers": _headers(),
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    responses = {str(operation.status): _success(operation)}
    responses |= {str(status): _refer("responses", _name(status)) for status in _errors(operation)}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "tags": [operation.tag],
        "parameters": _parameters(operation),
        "responses": responses,
    }
    if operation.is_open:
        described["security"] = []
    if operation.request is not None:
        described["requestBody"] = _body(operation, operation.request)
    return described


def _errors(operation: Operation) -> list[int]:
    """Return the statuses of errors of an operation, ascending."""
    found = set(operation.errors)
    if not operation.is_open:
        found |= {400, 401, 500, 503}
    if operation.on_session:
        found |= {404, 410, 504}
    if operation.request is not None:
        found |= {413, 415, 422}
    if operation.query is not None or operation.reply is messages.Rendered:
        found.add(422)
    if operation.on_session and (operation.request or operation.query is messages.Trajectory):
        found.add(409)
    return sorted(found)


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found = [_refer("parameters", "SessionId")] if operation.on_session else []
    if operation.query is not None:
        for name, schema in properties_of(operation.query).items():
            meaning = schema.pop("description")
            if isinstance(schema["type"], list):  # a query cannot hold null
                schema["type"] = schema["type"][0]
            found.append({"name": name, "in": "query", "schema": schema, "description": meaning})
    return found if operation.is_open else [*found, _refer("parameters", "Protocol")]


def _body(operation: Operation, kind: type[Any]) -> dict[str, Any]:
    schema = reference(kind.__name__)
    if operation.in_batch:
        items = schema if kind is messages.Create else reference(_item_name(operation))
        listed = {"type": "array", "items": items, "maxItems": messages.MAX_BATCH}
        schema = object_of({"items": listed})
    required = operation.in_batch or bool(request_of(kind)["required"])
    return {
        "required": required,
        "content": _content("application/json", schema, operation.example),
    }


def _item_name(operation: Operation) -> str:
    return operation.name.removeprefix("batch") + "Item"


def _success(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"description": "The reply.", "headers": _header_references()}
    reply = operation.reply
    if reply is not None:
        schema = reply if isinstance(reply, dict) else reference(reply.__name__)
        if operation.in_batch:
            found["description"] = "One result or one error per item."
            results = {"type": "array", "items": {"anyOf": [schema, reference("Error")]}}
            schema = object_of({"results": results})
        found["content"] = _content(operation.media, schema)
    if operation.links:
        source = "$response.body#/" if reply is messages.Opened else "$request.path."
        target = {"session_id": f"{source}session_id"}
        found["links"] = {n: {"operationId": n, "parameters": target} for n in operation.links}
    return found


def _content(media: str, schema: Schema, example: Any = None) -> dict[str, Any]:
    return {media: {"schema": schema} | ({} if example is None else {"example": example})}


def _name(status: int) -> str:
    """Return the name of the response of an error: the phrase of its status."""
    return HTTPStatus(status).phrase.title().replace(" ", "")


def _error(status: int) -> dict[str, Any]:
    codes = [code for code, row in error_codes.CODES.items() if row.status == status]
    more = {401: ("WWW-Authenticate",), 429: ("Retry-After",)}.get(status, ())
    example = error_codes.body(codes[0], _FAILURES[status])
    return {
        "description": f"{_FAILURES[status]} Codes: {', '.join(f'`{code}`' for code in codes)}.",
        "headers": _header_references(*more),
        "content": _content("application/json", reference("Error"), example),
    }


def _refer(kind: str, name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/{kind}/{name}"}


def _header_references(*more: str) -> dict[str, Any]:
    names = (framing.PROTOCOL_HEADER, "Server-Timing", "Cache-Control", *more)
    return {name: _refer("headers", name) for name in names}


def _headers() -> dict[str, Any]:
    schemas: dict[str, Schema] = {
        framing.PROTOCOL_HEADER: {
            "type": "string",
            "const": framing.PROTOCOL,
            "description": "The protocol's version; a reply without it is not of this server.",
        },
        "Server-Timing": {
            "type": "string",
            "pattern": "^app;dur=[0-9.]+$",
            "description": "Milliseconds that the application took.",
        },
        "Cache-Control": {"type": "string", "const": "no-store"},
        "Retry-After": {"type": "integer", "minimum": 1, "description": "Seconds."},
        "WWW-Authenticate": {"type": "string", "const": "Bearer"},
    }
    return {name: {"required": True, "schema": schema} for name, schema in schemas.items()}


def _schemas() -> dict[str, Schema]:
    """Return the named schemas: of requests, of the items of batches, and of replies."""
    found: dict[str, Schema] = {}
    for operation in OPERATIONS:
        request, reply = operation.request, operation.reply
        if request is not None and not operation.in_batch:
            found[request.__name__] = request_of(request)
        if request is not None and operation.in_batch and request is not messages.Create:
            alone = request_of(request)
            required = ["session_id", *alone["required"]]
            found[_item_name(operation)] = object_of(
                {"session_id": {"type": "string"}, **alone["properties"]}, required
            )
        if isinstance(reply, type):
            found[reply.__name__] = object_of(properties_of(reply))
    for kind in (messages.Description, messages.Limits):
        found[kind.__name__] = object_of(properties_of(kind))
    return found | value_schemas()
