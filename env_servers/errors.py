"""Exceptions -> error bodies with true status codes."""

from __future__ import annotations

import logging
import re
import secrets
from typing import Final

from flask import Response, g
from werkzeug.exceptions import HTTPException

from agentgyms import error_codes, wire
from env_servers import logs

log = logging.getLogger(__name__)

_FOLDERS: Final = re.compile(r"(?<![\w/:.])/(?:[^/'\":,;\n]+/)+(?=[^\s/])")
_OF_STATUS: Final = {
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
}


class Refusal(Exception):
    """The server does not do what was asked, for a reason of its own.

    Args:
        code: A key of `agentgyms.error_codes.CODES`.
        message: What was asked, what is expected.
        retry_after_s: When it may be asked again.
    """

    def __init__(self, code: str, message: str, retry_after_s: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_s = retry_after_s


def code_and_message(error: Exception) -> tuple[str, str]:
    """Return the code and the text that a client gets for an exception.

    An exception that is no error of ours is logged; the client gets the log line's id alone.
    """
    if isinstance(error, Refusal):
        return error.code, str(error)
    code = error_codes.code_of(error)
    if code != "internal":
        return code, _told(code, str(error))
    incident = secrets.token_hex(6)
    told = logs.fields(incident=incident)
    log.error("unexpected error %s", incident, exc_info=error, extra=told)
    return code, f"an unexpected error, logged on the server as {incident}"


def _told(code: str, message: str) -> str:
    """Return what a client is told: of the server's files the names and not where they are."""
    if error_codes.CODES[code].status < 500:
        return message
    shown = _FOLDERS.sub(".../", message)
    if shown != message:
        log.warning("%s: %s", code, message)
    return shown


def to_response(error: Exception) -> Response:
    """Return the HTTP response for an exception."""
    if isinstance(error, HTTPException):
        return _http_error(error)
    code, message = code_and_message(error)
    response = _response(code, message, error_codes.CODES[code].status)
    if isinstance(error, Refusal) and error.retry_after_s:
        response.headers["Retry-After"] = str(error.retry_after_s)
    if code == "unauthorized":
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _http_error(error: HTTPException) -> Response:
    status = error.code or 500
    code = _OF_STATUS.get(status, "bad_request" if status < 500 else "internal")
    response = _response(code, error.description or error.name, status)
    allow = dict(error.get_headers()).get("Allow")
    if allow:
        response.headers["Allow"] = allow
    return response


def _response(code: str, message: str, status: int) -> Response:
    g.code = code
    text = wire.dumps(error_codes.body(code, message))
    return Response(text, status=status, mimetype="application/json")
