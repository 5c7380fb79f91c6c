"""Parses replies of OpenAI-compatible servers; checks size, format and completeness."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from agentgyms.models.error_replies import classify_error, get_typed
from agentgyms.models.rate_limit import RetryableError
from agentgyms.models.types import Answer, ServedCall

LONGEST_TOKEN: Final = 200
"""Maximum characters of a token."""

FINISHED_REASONS: Final = frozenset(
    {"", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "function_call"}
)
"""Finish reasons that mean the model ended its turn; so does a missing reason."""

TRUNCATED_REASONS: Final = frozenset(
    {"length", "max_tokens", "model_length", "content_filter", "repetition"}
)
"""Finish reasons with which an empty answer is valid."""

_FAILED: Final = frozenset({"error", "abort", "cancelled"})
_LONGEST_ERROR: Final = 2**16
_LINGER_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer, the model's name in the reply, and the `system_fingerprint` or ""."""

    answer: Answer
    model: str = ""
    fingerprint: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the model ended its turn without text and without a call."""
        return self.answer.finished and not self.answer.text and not self.answer.calls


async def read_reply(response: httpx2.Response, max_tokens: int) -> Reply:
    """Read the reply of a response, whose body may be a stream of events; it limits the bytes read.

    An empty text is valid if it was truncated (the model may have thought until its limit), or if
    the server sends it as text and counts exactly one token: the end of the turn. Otherwise it is
    an error: `RetryableError`, or `RequestRejected` if the server rejects the request.
    """
    if not 200 <= response.status_code < 300:
        content = await read_body(response, _LONGEST_ERROR, strict=False)
        raise classify_error(response.status_code, parse_json(content), response.headers)
    draft = _PartialReply(max_tokens)
    # bytes: a generous JSON frame around each token
    limit = 2**20 + 4096 * max_tokens
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        await _read_events(response, limit, draft)
    else:
        draft.add(parse_json(await read_body(response, limit)), "message", response)
    return draft.reply()


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: str = ""

    def whole(self, index: int) -> ServedCall:
        parts = (self.id or f"call_{index}", self.name, self.arguments)
        return ServedCall(*map(_replace_surrogates, parts))


class _PartialReply:
    def __init__(self, max_tokens: int) -> None:
        self.longest = LONGEST_TOKEN * max_tokens
        self.parts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: dict[int, _PartialCall] = {}
        self.length = 0
        self.has_content = False
        self.reason: str | None = None
        self.usage: dict[str, Any] = {}
        self.model = self.fingerprint = ""

    def add(self, event: Any, key: str, response: httpx2.Response) -> None:
        """Add an event or a whole body; `key` is the name of its message field."""
        if not isinstance(event, dict):
            raise RetryableError("broken answer", f"the answer is no JSON object: {event}")
        if event.get("error") and not event.get("choices"):
            raise classify_error(0, event, response.headers)
        self.usage = get_typed(event, "usage", dict) or self.usage
        self.model = get_typed(event, "model", str) or self.model
        self.fingerprint = get_typed(event, "system_fingerprint", str) or self.fingerprint
        choices = get_typed(event, "choices", list) or []
        if not choices and key == "message":
            raise RetryableError("broken answer", f"the answer has no choices: {event}")
        # n is 1; the last event of a stream, with the usage alone, has no choice
        for choice in choices[:1]:
            self._add_choice(choice, key)

    def _add_choice(self, choice: Any, key: str) -> None:
        message = choice.get(key) if isinstance(choice, dict) else None
        if key == "message" and not isinstance(message, dict):
            raise RetryableError("broken answer", f"the answer has no message: {choice}")
        message = message if isinstance(message, dict) else {}
        text = _text_of(message)
        self.has_content = self.has_content or isinstance(message.get("content"), str)
        thought = get_typed(message, "reasoning_content", str) or get_typed(
            message, "reasoning", str
        )
        self.parts.append(text)
        self.thoughts.append(thought or "")
        self.length += len(text) + len(thought or "") + self._add_calls(message)
        if self.length > self.longest:
            raise RetryableError(
                "huge answer", f"the answer is longer than {self.longest} characters, its limit"
            )
        self.reason = get_typed(choice, "finish_reason", str) or self.reason

    def _add_calls(self, message: dict[str, Any]) -> int:
        """Add the calls of a message, or parts of them, and return their number of characters."""
        added = 0
        for place, part in enumerate(get_typed(message, "tool_calls", list) or []):
            part = part if isinstance(part, dict) else {}
            index = get_typed(part, "index", int)
            # streams send a call in parts, which share an index
            call = self.calls.setdefault(place if index is None else index, _PartialCall())
            function = get_typed(part, "function", dict) or {}
            arguments = function.get("arguments")
            if isinstance(arguments, dict):  # some servers send the object itself
                arguments = json.dumps(arguments)
            call.id = call.id or get_typed(part, "id", str) or ""
            call.name = call.name or get_typed(function, "name", str) or ""
            call.arguments += arguments if isinstance(arguments, str) else ""
            added += len(call.name) + (len(arguments) if isinstance(arguments, str) else 0)
        return added

    def reply(self) -> Reply:
        """Return the complete reply, or raise `RetryableError`."""
        text, reason = _replace_surrogates("".join(self.parts)), self.reason or ""
        prompt, response = _count(self.usage, "prompt"), _count(self.usage, "completion")
        if reason in _FAILED:
            raise RetryableError("broken answer", f"the server aborted the answer: {reason}")
        # one token with empty text is the end of the turn
        ended = reason in TRUNCATED_REASONS or (self.has_content and response == 1)
        if not text and not ended and not self.calls:
            raise RetryableError(
                "empty answer", f"the answer is empty (finish_reason {self.reason})"
            )
        reasoning = _replace_surrogates("".join(self.thoughts))
        details = get_typed(self.usage, "completion_tokens_details", dict) or {}
        thought = _count(details, "reasoning") if "reasoning_tokens" in details else None
        answer = Answer(
            text,
            reason in FINISHED_REASONS,
            prompt,
            response,
            reasoning,
            calls=tuple(call.whole(index) for index, call in sorted(self.calls.items())),
            reasoning_tokens=thought,
        )
        return Reply(answer, self.model, self.fingerprint)


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        texts = (get_typed(part, "text", str) for part in content if isinstance(part, dict))
        return "".join(text or "" for text in texts)
    if isinstance(content, str):
        return content
    return get_typed(message, "refusal", str) or ""


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _count(usage: dict[str, Any], kind: str) -> int:
    tokens = usage.get(f"{kind}_tokens")
    return tokens if type(tokens) is int and 0 <= tokens < 2**48 else 0


async def _read_events(response: httpx2.Response, limit: int, draft: _PartialReply) -> None:
    """Read one-line server-sent events into the draft; `RetryableError` if the end is missing."""
    lines = _lines(response, limit)
    async for line in lines:
        if not line.startswith(b"data:"):
            continue  # comments keep the connection alive
        content = line.removeprefix(b"data:").strip()
        if content == b"[DONE]":
            # Read to the end of the transfer, so that the connection can be reused.
            with suppress(TimeoutError, httpx2.HTTPError, RetryableError):
                async with asyncio.timeout(_LINGER_S):
                    async for _ in lines:
                        pass
            break
        draft.add(parse_json(content), "delta", response)
    if draft.reason is None:
        raise RetryableError("broken stream", "the stream ended before the answer did")


async def _lines(response: httpx2.Response, limit: int) -> AsyncIterator[bytes]:
    rest, size = b"", 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        _check_size(size, limit)
        # a chunk may end within a line
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
    yield rest


async def read_body(response: httpx2.Response, limit: int, *, strict: bool = True) -> bytes:
    """Read at most `limit` bytes; cut off the rest, or raise `RetryableError` if `strict`."""
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if strict:
            _check_size(size, limit)
        elif size > limit:
            break
    return b"".join(chunks)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise RetryableError(
            "huge answer", f"the answer is longer than {limit} bytes, more than it can be"
        )


def parse_json(content: bytes) -> Any:
    """Return the JSON value of a body, or its text if it is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")
