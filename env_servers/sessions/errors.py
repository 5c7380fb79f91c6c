"""Error replies: the body and the status code of each exception."""

from __future__ import annotations

import logging
import re
import secrets
from typing import Final

from flask import Response, g
from werkzeug.exceptions import HTTPException

from agentgyms.core import serialization
from agentgyms.remote.protocol import error_codes
from env_servers.observability import logs

log = logging.getLogger(__name__)

_FOLDERS: Final = re.compile(r"(?<![\w/:.])/(?:[^/'\":,;\n]+/)+(?=[^\s/])")
_CODE_BY_STATUS: Final = {
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
}


_ASKED_AGAIN: Final = ("server_full", "overloaded")
_OVERLOADED_S: Final = 1


class Refusal(Exception):
    """The server refuses a request; the environment is not the reason.

    `code` is a key of `agentgyms.remote.protocol.error_codes.CODES`. The client may try again after
    `retry_after_s`.
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
    if code == "overloaded":
        log.warning("overloaded: %s", error)
        return code, "the server can open no file more"
    if code != "internal":
        return code, _without_folders(code, str(error))
    incident = secrets.token_hex(6)
    extra = logs.fields(incident=incident)
    log.error("unexpected error %s", incident, exc_info=error, extra=extra)
    return code, f"an unexpected error, logged on the server as {incident}"


def _without_folders(code: str, message: str) -> str:
    """Return a message for clients: names of files on the server, without their folders."""
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
    wait_s = error.retry_after_s if isinstance(error, Refusal) else _OVERLOADED_S
    if wait_s and code in _ASKED_AGAIN:
        response.headers["Retry-After"] = str(wait_s)
    if code == "unauthorized":
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _http_error(error: HTTPException) -> Response:
    status = error.code or 500
    code = _CODE_BY_STATUS.get(status, "bad_request" if status < 500 else "internal")
    response = _response(code, error.description or error.name, status)
    allow = dict(error.get_headers()).get("Allow")
    if allow:
        response.headers["Allow"] = allow
    return response


def _response(code: str, message: str, status: int) -> Response:
    g.code = code
    text = serialization.dumps(error_codes.body(code, message))
    return Response(text, status=status, mimetype="application/json")
