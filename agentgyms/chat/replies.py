"""What an OpenAI-compatible server replies, read without trust in its size, its form or its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from agentgyms.chat.refusals import judge, valued
from agentgyms.chat.service import Fault
from agentgyms.chat.values import Answer

LONGEST_TOKEN: Final = 200
"""Most characters that a token is believed to have."""

ENDED: Final = frozenset(
    {"", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "function_call"}
)
"""Reasons to finish that say the model ended its turn; a server that gives none means that too."""

CUT: Final = frozenset({"length", "max_tokens", "model_length", "content_filter", "repetition"})
"""Reasons to finish with which an empty answer is the model's."""

_FAILED: Final = frozenset({"error", "abort", "cancelled"})
_LONGEST_ERROR: Final = 2**16
_LINGER_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is whole, and who gave it.

    Attributes:
        answer: The answer.
        model: The model's name in it.
        fingerprint: The server's `system_fingerprint`, or "".
    """

    answer: Answer
    model: str = ""
    fingerprint: str = ""

    @property
    def silent(self) -> bool:
        """The model ended its turn at once, or so it seems."""
        return self.answer.finished and not self.answer.text


async def read_reply(response: httpx2.Response, max_tokens: int) -> Reply:
    """Return the reply in a response, whole or as a stream of events.

    An empty text is the model's own where it was cut off (it may have thought until its limit), and
    where the server sends it as text and counts exactly one token: the end of the model's turn.
    Otherwise it is a fault.

    Args:
        response: Its body is not read yet.
        max_tokens: Limit of the answer; it also limits how much is read.

    Raises:
        Fault: The answer is no answer; another attempt may bring one.
        Refused: The server does not take the request.
    """
    if not 200 <= response.status_code < 300:
        content = await read_body(response, _LONGEST_ERROR, strict=False)
        raise judge(response.status_code, parsed(content), response.headers)
    draft = _Draft(max_tokens)
    limit = 2**20 + 4096 * max_tokens
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        await _read_events(response, limit, draft)
    else:
        draft.add(parsed(await read_body(response, limit)), "message", response)
    return draft.reply()


class _Draft:
    """An answer of which parts may be missing."""

    def __init__(self, max_tokens: int) -> None:
        self.longest = LONGEST_TOKEN * max_tokens
        self.parts: list[str] = []
        self.length = 0
        self.spoke = False
        self.reason: str | None = None
        self.usage: dict[str, Any] = {}
        self.model = self.fingerprint = ""

    def add(self, event: Any, key: str, response: httpx2.Response) -> None:
        """Take over what an event, or the whole body, says; `key` is where its message is."""
        if not isinstance(event, dict):
            raise Fault("broken answer", f"the answer is no JSON object: {event}")
        if event.get("error") and not event.get("choices"):
            raise judge(0, event, response.headers)
        self.usage = valued(event, "usage", dict) or self.usage
        self.model = valued(event, "model", str) or self.model
        self.fingerprint = valued(event, "system_fingerprint", str) or self.fingerprint
        choices = valued(event, "choices", list) or []
        if not choices and key == "message":
            raise Fault("broken answer", f"the answer has no choices: {event}")
        for choice in choices[:1]:
            self._take(choice, key)

    def _take(self, choice: Any, key: str) -> None:
        message = choice.get(key) if isinstance(choice, dict) else None
        if key == "message" and not isinstance(message, dict):
            raise Fault("broken answer", f"the answer has no message: {choice}")
        message = message if isinstance(message, dict) else {}
        text = _text_of(message)
        self.spoke = self.spoke or isinstance(message.get("content"), str)
        self.parts.append(text)
        self.length += len(text)
        if self.length > self.longest:
            raise Fault(
                "huge answer", f"the answer is longer than {self.longest} characters, its limit"
            )
        self.reason = valued(choice, "finish_reason", str) or self.reason

    def reply(self) -> Reply:
        """Return the whole reply; `Fault` if it is none."""
        text, reason = _sound("".join(self.parts)), self.reason or ""
        prompt, response = _count(self.usage, "prompt"), _count(self.usage, "completion")
        if reason in _FAILED:
            raise Fault("broken answer", f"the server broke the answer off: {reason}")
        own = reason in CUT or (self.spoke and response == 1)
        if not text and not own:
            raise Fault("empty answer", f"the answer is empty (finish_reason {self.reason})")
        answer = Answer(text, reason in ENDED, prompt, response)
        return Reply(answer, self.model, self.fingerprint)


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        texts = (valued(part, "text", str) for part in content if isinstance(part, dict))
        return "".join(text or "" for text in texts)
    if isinstance(content, str):
        return content
    return valued(message, "refusal", str) or ""


def _sound(text: str) -> str:
    """Return the text with halves of characters replaced: no file could hold them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _count(usage: dict[str, Any], kind: str) -> int:
    tokens = usage.get(f"{kind}_tokens")
    return tokens if type(tokens) is int and 0 <= tokens < 2**48 else 0


async def _read_events(response: httpx2.Response, limit: int, draft: _Draft) -> None:
    """Fill the draft from server-sent events, each of one line; `Fault` if their end is missing."""
    lines = _lines(response, limit)
    async for line in lines:
        if not line.startswith(b"data:"):
            continue  # comments keep the connection alive
        content = line.removeprefix(b"data:").strip()
        if content == b"[DONE]":
            await _drain(lines)
            break
        draft.add(parsed(content), "delta", response)
    if draft.reason is None:
        raise Fault("broken stream", "the stream ended before the answer did")


async def _drain(lines: AsyncIterator[bytes]) -> None:
    """Read on to the end of the transfer: only then can the connection be used again."""
    with suppress(TimeoutError, httpx2.HTTPError, Fault):
        async with asyncio.timeout(_LINGER_S):
            async for _ in lines:
                pass


async def _lines(response: httpx2.Response, limit: int) -> AsyncIterator[bytes]:
    rest, size = b"", 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        _check_size(size, limit)
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
    yield rest


async def read_body(response: httpx2.Response, limit: int, *, strict: bool = True) -> bytes:
    """Return the body of a response that is not read yet.

    Args:
        response: The response.
        limit: Most bytes.
        strict: Of a longer one, raise `Fault`; else return its beginning.
    """
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
        raise Fault("huge answer", f"the answer is longer than {limit} bytes, more than it can be")


def parsed(content: bytes) -> Any:
    """Return the JSON value of a body, or its text if it is no JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")
