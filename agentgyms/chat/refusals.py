"""Why a server does not answer, in its own words: what may be tried again, and what may not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from agentgyms.chat.service import Fault, retry_after_s
from agentgyms.chat.terms import TERMS, Terms

_T = TypeVar("_T")

_LONGEST_WORDS: Final = 300
_AGAIN: Final = frozenset({408, 409, 425, 429})
_SPENT: Final = ("insufficient_quota", "billing_hard_limit_reached")

# OpenAI and vLLM, llama.cpp (an older one with status 500), llama-cpp-python, SGLang, Gemini and
# Anthropic.
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|maximum context length|exceeds? the (?:available )?context size"
    r"|context size has been exceeded|exceed_context_size|exceed context window"
    r"|(?:exceeds?|longer than) the model's (?:maximum )?context"
    r"|exceeds the maximum number of tokens|prompt is too long",
    re.IGNORECASE,
)

# llama.cpp (an older one with status 500); and what others say of images, or of content in parts.
_NO_IMAGES: Final = re.compile(r"image input is not supported|\bmmproj\b", re.IGNORECASE)
_ABOUT_IMAGES: Final = re.compile(
    r"\bimages?(?:_url)?\b|multi-?modal|\bvision\b|mmproj|content\b.*\bstr(?:ing)?\b", re.IGNORECASE
)


class Refused(Exception):
    """The server does not take the request, and would not take it again.

    Attributes:
        status: Of the answer.
        words: The server's own, in one line that may be long; `shown` cuts them.
        parameter: The field of the request that it names, or "".
        code: Its code or type for that, or "".
        location: Where it redirects to, or "".
    """

    def __init__(
        self, status: int, words: str, parameter: str = "", code: str = "", location: str = ""
    ) -> None:
        """Keep what the server said."""
        super().__init__(words)
        self.status, self.words, self.parameter = status, words, parameter
        self.code, self.location = code, location

    @property
    def too_long(self) -> bool:
        """The prompt and its longest response do not fit into the model's context."""
        return bool(_TOO_LONG.search(self.code) or _TOO_LONG.search(self.words))

    @property
    def blind(self) -> bool:
        """Images are what the server does not take, if the request has any."""
        return self.status not in (401, 402, 403) and bool(_ABOUT_IMAGES.search(self.words))

    @property
    def filtered(self) -> bool:
        """A filter refuses the prompt; some services say so with a status, not with a reason."""
        return self.status == 400 and self.code == "content_filter"


def judge(status: int, reply: Any, headers: Mapping[str, str]) -> Fault | Refused:
    """Return what a reply that is no answer means.

    Args:
        status: Of the reply; 0 takes the one that an error inside an answer names.
        reply: Its JSON, or its text.
        headers: Of the reply.
    """
    error = _error_of(reply)
    codes = [str(error[key]) for key in ("code", "type") if error.get(key)]
    if not status and codes and codes[0].isdecimal():
        status = int(codes[0])
    words = _words(error)
    code = next((code for code in codes if not code.isdecimal()), "")
    refused = Refused(
        status, words, str(error.get("param") or ""), code, headers.get("location", "")
    )
    if refused.too_long or set(codes) & set(_SPENT) or _NO_IMAGES.search(words):
        return refused
    if 300 <= status < 500 and status not in _AGAIN:
        return refused
    cause = f"status {status}" if status else "error in answer"
    said = f"status {status}: {words}" if status else words
    return Fault(cause, said, status, retry_after_s(headers))


def spare_fields(sent: Mapping[str, Any]) -> list[str]:
    """Return the fields of a request that can be left out where a server does not take them.

    `seed`, `stream_options` and `n`; and `top_p` and `temperature` where they are 1, which is what
    leaving them out means to such a server.
    """
    spare = [key for key in ("seed", "stream_options", "n") if key in sent]
    return spare + [key for key in ("top_p", "temperature") if sent.get(key) == 1]


def refused_field(refused: Refused, sent: Mapping[str, Any]) -> str | None:
    """Return the field of a request that is refused and can be left out; None for no such field.

    `max_tokens` is one where the server asks for `max_completion_tokens` in its place.
    """
    if refused.status not in (400, 422) or refused.too_long:
        return None
    if "max_tokens" in sent and "max_completion_tokens" in refused.words:
        return "max_tokens"
    for key in spare_fields(sent):
        named = rf"\b{key}\b" if key != "n" else r"""["'`]n["'`]"""
        if refused.parameter == key or re.search(named, refused.words):
            return key
    return None


def advice(refused: Refused, known: str, images: int = 0, terms: Terms = TERMS) -> str:
    """Return what to do about a refusal.

    Args:
        refused: The refusal.
        known: Sentence on the models that the server knows, or "".
        images: How many the request shows.
        terms: What settings are called.
    """
    if refused.location:
        return f"it redirects to {refused.location}: set {terms.model}url to where it leads"
    if refused.code in _SPENT or refused.status == 402:
        return f"the account has nothing left: add to it, then {terms.resume}"
    if images and refused.blind:
        return (
            f"it seems that the model does not see images: set {terms.model}name to one that does, "
            f"or {terms.blind}"
        )
    if refused.status == 401:
        return f"check the key in the environment variable that {terms.model}key_variable names"
    if refused.status == 403:
        return f"check what the key may use: {terms.model}name, and the account it belongs to"
    if refused.status == 404:
        where = f"{terms.model}url, which ends in /v1 for most servers"
        return f"check {terms.model}name and {where}{known}"
    return f"check {terms.model}name, {terms.model}extra and sampling{known}"


def shown(words: str, key: str) -> str:
    """Return a server's words as messages and logs may hold them: on one line, cut, without a key.

    Args:
        words: Not cut yet, or a part of the key could be left.
        key: What must not be repeated, or "".
    """
    words = " ".join((words.replace(key, "***") if key else words).split())
    return words if len(words) <= _LONGEST_WORDS else f"{words[:_LONGEST_WORDS]}..."


def valued(values: Mapping[str, Any], key: str, kind: type[_T]) -> _T | None:
    """Return the value if it is there and of that kind."""
    value = values.get(key)
    return value if isinstance(value, kind) else None


def _error_of(reply: Any) -> dict[str, Any]:
    """Return the error in a reply, whatever form the server gives it."""
    if isinstance(reply, list) and reply:
        reply = reply[0]
    if not isinstance(reply, dict):
        return {"message": reply}
    error = reply.get("error") or reply
    return error if isinstance(error, dict) else {"message": error}


def _words(error: dict[str, Any]) -> str:
    """Return what an error says, and what a service behind the server has said."""
    said = error.get("message") or error.get("detail") or error
    behind = (valued(error, "metadata", dict) or {}).get("raw")
    return " ".join((f"{said}: {behind}" if behind else str(said)).split())
