"""Bodies of requests and replies: JSON."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from agentgyms.core import serialization
from agentgyms.core.errors import BadRequest
from env_servers.sessions.errors import Refusal
from env_servers.sessions.service import service


def read_body() -> Any:
    """Return the request's JSON value, {} for an empty body.

    `Refusal` if it is too long or no JSON.
    """
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
