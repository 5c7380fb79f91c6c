"""The table of exceptions and their codes; a client raises the server's class with its text."""

from __future__ import annotations

import errno
from typing import Any, Final, NamedTuple

from gymnasium.error import DependencyNotInstalled, ResetNeeded

from agentgyms.core import errors


class Code(NamedTuple):
    """The HTTP status of an error code, the client's exception, and a remedy in one sentence."""

    status: int
    raises: type[Exception]
    retryable: bool = False
    hint: str = ""


_SERVER_DATA: Final = "The server's operator has to provide this."

CODES: Final[dict[str, Code]] = {
    "bad_json": Code(400, errors.BadRequest, hint="Send one JSON object."),
    "protocol_mismatch": Code(
        400, errors.BadRequest, hint="Install the same version of agentgyms on both sides."
    ),
    "unauthorized": Code(
        401,
        errors.Unauthorized,
        hint="Pass token=... or set AGENTGYMS_TOKEN to the server's token.",
    ),
    "not_found": Code(404, errors.BadRequest, hint="GET /openapi.json lists the routes."),
    "unknown_session": Code(
        404, errors.SessionLost, hint="Create a session; sessions do not survive a restart."
    ),
    "method_not_allowed": Code(405, errors.BadRequest, hint="GET /openapi.json lists the routes."),
    "reset_needed": Code(409, ResetNeeded, hint="Reset the session."),
    "turn_conflict": Code(
        409, errors.SessionLost, hint="GET the session to see where its episode stands."
    ),
    "request_conflict": Code(
        409, errors.BadRequest, hint="Send another request_id with another request."
    ),
    "group_mismatch": Code(409, errors.GroupMismatch),
    "replay_mismatch": Code(409, errors.ReplayMismatch),
    "mismatch": Code(409, errors.Mismatch),
    "session_expired": Code(410, errors.SessionLost, hint="Create another session."),
    "too_large": Code(413, errors.BadRequest, hint="Send less, or split a batch."),
    "unsupported_media_type": Code(
        415, errors.BadRequest, hint="Send Content-Type: application/json."
    ),
    "bad_request": Code(422, errors.BadRequest, hint="GET /openapi.json describes the messages."),
    "unknown_task": Code(422, errors.UnknownTask, hint="GET /v1/tasks lists the tasks."),
    "unknown_split": Code(422, errors.UnknownSplit, hint="GET /v1/info lists the splits."),
    "bad_option": Code(422, errors.BadOption),
    "bad_snapshot": Code(422, errors.BadSnapshot),
    "caller_error": Code(422, errors.CallerError),
    "type_error": Code(422, TypeError),
    "value_error": Code(422, ValueError),
    "server_full": Code(
        429, errors.ServerFull, retryable=True, hint="Retry after the seconds in Retry-After."
    ),
    "internal": Code(500, errors.EnvUnavailable, hint="The server's log has the details."),
    "data_missing": Code(503, errors.DataMissing, hint=_SERVER_DATA),
    "data_corrupt": Code(503, errors.DataCorrupt, hint=_SERVER_DATA),
    "data_error": Code(503, errors.DataError, hint=_SERVER_DATA),
    "dependency_missing": Code(503, DependencyNotInstalled, hint=_SERVER_DATA),
    "worker_lost": Code(
        503, errors.WorkerLost, retryable=True, hint="Begin the episode again in a new session."
    ),
    "model_unavailable": Code(
        503,
        errors.ModelUnavailable,
        retryable=True,
        hint="Take the same turn again: the episode stands where it stood.",
    ),
    "env_unavailable": Code(
        503, errors.EnvUnavailable, retryable=True, hint="Begin the episode again in a new session."
    ),
    "overloaded": Code(
        503,
        errors.ServerOverloaded,
        retryable=True,
        hint="Retry after the seconds in Retry-After.",
    ),
    "not_ready": Code(503, errors.ServerUnavailable, retryable=True, hint="Retry in a second."),
    "draining": Code(
        503, errors.ServerUnavailable, retryable=True, hint="The server stops; use another one."
    ),
    "timeout": Code(504, errors.ServerUnavailable, retryable=True, hint="Retry the same request."),
}
"""Every error code of a server."""

_RAISED_BY_ENVIRONMENTS: Final = (
    "reset_needed",
    "group_mismatch",
    "replay_mismatch",
    "mismatch",
    "bad_request",
    "unknown_task",
    "unknown_split",
    "bad_option",
    "bad_snapshot",
    "caller_error",
    "data_missing",
    "data_corrupt",
    "data_error",
    "dependency_missing",
    "worker_lost",
    "model_unavailable",
    "env_unavailable",
)
# Builtin exceptions are left out: a TypeError may be anybody's mistake. So are the errors between
# client and server: an environment may raise them about another server of its own, which for our
# client is an EnvUnavailable.
_CODE_OF_CLASS: Final = {CODES[code].raises: code for code in _RAISED_BY_ENVIRONMENTS}


NO_FILES: Final = (errno.EMFILE, errno.ENFILE)
"""Errors of a process, or a machine, that may open no file more."""


def code_of(error: BaseException) -> str:
    """Return the code of an exception: `overloaded` if files ran out, `internal` if unknown."""
    reason: BaseException | None = error
    while reason is not None:
        if isinstance(reason, OSError) and reason.errno in NO_FILES:
            return "overloaded"
        reason = reason.__cause__ or reason.__context__
    for ancestor in type(error).__mro__:
        if ancestor in _CODE_OF_CLASS:
            return _CODE_OF_CLASS[ancestor]
    return "internal"


def body(code: str, message: str) -> dict[str, Any]:
    """Return the JSON body of an error."""
    row = CODES[code]
    return {
        "error": {"code": code, "message": message, "retryable": row.retryable, "hint": row.hint}
    }


def exception(code: str, message: str, status: int = 0) -> Exception:
    """Return the exception for an error on the wire; for an unknown code `status` decides."""
    if code in CODES:
        return CODES[code].raises(message)
    if 400 <= status < 500:
        return errors.BadRequest(message)
    return errors.EnvUnavailable(message)
