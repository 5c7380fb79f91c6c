"""Classifies error replies of servers: retryable errors and rejected requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from agentgyms.core.http_clients import printable
from agentgyms.models.rate_limit import RetryableError, retry_after_s
from agentgyms.models.types import SETTING_NAMES, SettingNames

_T = TypeVar("_T")

_MAX_MESSAGE_LENGTH: Final = 300
_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_QUOTA_CODES: Final = ("insufficient_quota", "billing_hard_limit_reached")

# OpenAI and vLLM, llama.cpp (an older one with status 500), llama-cpp-python, SGLang, Gemini and
# Anthropic.
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|maximum context length|exceeds? the (?:available )?context size"
    r"|context size has been exceeded|exceed_context_size|exceed context window"
    r"|(?:exceeds?|longer than) the model's (?:maximum )?context"
    r"|exceeds the maximum number of tokens|prompt is too long",
    re.IGNORECASE,
)

# llama.cpp (an older one with status 500); and other servers' messages about images or parts.
_NO_IMAGES: Final = re.compile(r"image input is not supported|\bmmproj\b", re.IGNORECASE)
_ABOUT_IMAGES: Final = re.compile(
    r"\bimages?(?:_url)?\b|multi-?modal|\bvision\b|mmproj|content\b.*\bstr(?:ing)?\b", re.IGNORECASE
)


class RequestRejected(Exception):
    """The server rejects the request permanently.

    `message` is the server's, on one line that may be long (`redact` shortens it). `parameter` is
    the field of the request that it names, `code` the error's code or type, `location` the target
    of a redirect; each may be "".
    """

    def __init__(
        self, status: int, message: str, parameter: str = "", code: str = "", location: str = ""
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.parameter = status, message, parameter
        self.code, self.location = code, location

    @property
    def too_long(self) -> bool:
        """Whether the prompt and `max_tokens` do not fit into the model's context."""
        return bool(_TOO_LONG.search(self.code) or _TOO_LONG.search(self.message))

    @property
    def about_images(self) -> bool:
        """Whether the error is about images, if the request has any."""
        return self.status not in (401, 402, 403) and bool(_ABOUT_IMAGES.search(self.message))

    @property
    def filtered(self) -> bool:
        """Whether a content filter blocks the prompt; some services use a status for this."""
        return self.status == 400 and self.code == "content_filter"


def classify_error(
    status: int, reply: Any, headers: Mapping[str, str]
) -> RetryableError | RequestRejected:
    """Return the exception for an error reply; a status 0 means the one inside the error."""
    error = _error_of(reply)
    codes = [str(error[key]) for key in ("code", "type") if error.get(key)]
    if not status and codes and codes[0].isdecimal():
        status = int(codes[0])
    message = _error_message(error)
    code = next((code for code in codes if not code.isdecimal()), "")
    refused = RequestRejected(
        status, message, str(error.get("param") or ""), code, headers.get("location", "")
    )
    if refused.too_long or set(codes) & set(_QUOTA_CODES) or _NO_IMAGES.search(message):
        return refused
    if 300 <= status < 500 and status not in _RETRYABLE:
        return refused
    cause = f"status {status}" if status else "error in answer"
    text = f"status {status}: {message}" if status else message
    return RetryableError(cause, text, status, retry_after_s(headers))


def optional_fields(sent: Mapping[str, Any]) -> list[str]:
    """Return the fields that may be omitted; `top_p` and `temperature` only at their default, 1."""
    spare = [key for key in ("seed", "stream_options", "n", "parallel_tool_calls") if key in sent]
    return spare + [key for key in ("top_p", "temperature") if sent.get(key) == 1]


def rejected_field(refused: RequestRejected, sent: Mapping[str, Any]) -> str | None:
    """Return the field to omit, `max_tokens` if it must be `max_completion_tokens`, or None."""
    if refused.status not in (400, 422) or refused.too_long:
        return None
    if "max_tokens" in sent and "max_completion_tokens" in refused.message:
        return "max_tokens"
    for key in optional_fields(sent):
        named = rf"\b{key}\b" if key != "n" else r"""["'`]n["'`]"""
        if refused.parameter == key or re.search(named, refused.message):
            return key
    return None


def advice(
    refused: RequestRejected, known: str, images: int = 0, names: SettingNames = SETTING_NAMES
) -> str:
    """Return what the user can do about a rejection; `known` names the server's models, or ""."""
    if refused.location:
        return f"it redirects to {refused.location}: set {names.model}url to where it leads"
    if refused.code in _QUOTA_CODES or refused.status == 402:
        return f"the account has nothing left: add to it, then {names.resume}"
    if images and refused.about_images:
        return (
            f"it seems that the model does not see images: set {names.model}name to one that does, "
            f"or {names.without_images}"
        )
    if refused.status == 401:
        return f"check the key in the environment variable that {names.model}key_variable names"
    if refused.status == 403:
        return f"check what the key may use: {names.model}name, and the account it belongs to"
    if refused.status == 404:
        where = f"{names.model}url, which ends in /v1 for most servers"
        return f"check {names.model}name and {where}{known}"
    return f"check {names.model}name, {names.model}extra and sampling{known}"


def redact(message: str, key: str) -> str:
    """Return a server's full message on one line, the key left out before it is shortened."""
    message = " ".join((message.replace(key, "***") if key else message).split())
    return message if len(message) <= _MAX_MESSAGE_LENGTH else f"{message[:_MAX_MESSAGE_LENGTH]}..."


def get_typed(values: Mapping[str, Any], key: str, kind: type[_T]) -> _T | None:
    """Return the value if it exists and has this type, else None."""
    value = values.get(key)
    return value if isinstance(value, kind) else None


def _error_of(reply: Any) -> dict[str, Any]:
    """Return the error object of a reply in any of the servers' formats."""
    if isinstance(reply, list) and reply:
        reply = reply[0]
    if not isinstance(reply, dict):
        return {"message": reply}
    error = reply.get("error") or reply
    return error if isinstance(error, dict) else {"message": error}


def _error_message(error: dict[str, Any]) -> str:
    """Return the error's message, with that of an upstream service."""
    text = error.get("message") or error.get("detail") or error
    behind = (get_typed(error, "metadata", dict) or {}).get("raw")
    return printable(" ".join((f"{text}: {behind}" if behind else str(text)).split()))
