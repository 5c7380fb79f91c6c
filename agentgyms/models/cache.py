"""A cache of a model's answers on disk, shared by all processes.

A key is the SHA-256 of all that an answer depends on: address, the model's name and what is loaded
under it, the fields of each request, messages, sampling and seed. Other weights under the same name
and address cannot be detected: disable the cache there. The file holds neither prompts nor keys of
services.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

import platformdirs

from agentgyms.core.errors import BadRequest
from agentgyms.core.images import decode_png, digest
from agentgyms.models.answer_store import AnswerStore
from agentgyms.models.types import Answer, Message, Sampling, ServedCall

_T = TypeVar("_T")

FORMAT: Final = 1
"""Part of every key, so that entries of other formats are not read."""

_NAME: Final = "answers.sqlite"

PNG_ADDRESS: Final = "data:image/png;base64"
"""The part of a data URL before the comma, for an image as PNG."""


_TOOL_FIELDS: Final = ("tools", "tool_calls", "tool_call_id")


class CacheableClient(Protocol):
    """A client whose answers can be cached, such as `agentgyms.models.client.ChatClient`."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        """Return the answer to `messages`."""

    def scope(self) -> dict[str, Any]:
        """Return what an answer depends on besides messages, sampling and seed, JSON-plain."""

    def report(self) -> dict[str, Any]:
        """Return statistics of the requests, JSON-plain."""

    async def close(self) -> None:
        """Release all resources."""


class CachedClient:
    """Answers requests from the cache, and sends the others to a client.

    Equal concurrent requests are sent once. A cached answer has its original usage. `path` is a
    file, or a folder for `answers.sqlite`; None means the user's cache folder.
    """

    def __init__(self, client: CacheableClient, path: str | Path | None = None) -> None:
        self.client = client
        self.hits = self.misses = 0
        self._store = AnswerStore(_file_of(path))
        self._thread = ThreadPoolExecutor(1, "answers")  # SQLite may wait for a disk
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        """Return the answer to `messages`, from the cache if possible; errors are the client's."""
        key = key_of(self.client.scope(), messages, sampling, seed)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            cached = await self._in_thread(lambda: self._store.get(key))
            if cached is not None:
                self.hits += 1
                return _from_json(cached)
            answer = await self.client.complete(messages, sampling, seed)
            self.misses += 1
            fields = _to_json(answer)
            return _from_json(await self._in_thread(lambda: self._store.put(key, fields)))

    async def forget(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> None:
        """Delete the answer to `messages` from the cache."""
        key = key_of(self.client.scope(), messages, sampling, seed)
        await self._in_thread(lambda: self._store.forget(key))

    async def close(self) -> None:
        """Close the file and the client."""
        try:
            await self._in_thread(self._store.close)
        finally:
            self._thread.shutdown()
            await self.client.close()

    def report(self) -> dict[str, Any]:
        """Return the client's report with the counts of the cache."""
        counts = {"hits": self.hits, "misses": self.misses, "damaged": self._store.damaged}
        return self.client.report() | {"cache": counts}

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def default_path() -> Path:
    """Return the default path of the cache."""
    return Path(platformdirs.user_cache_dir("agentgyms")) / _NAME


def _file_of(path: str | Path | None) -> Path:
    if not path:
        return default_path()
    return Path(path) / _NAME if Path(path).is_dir() else Path(path)


def key_of(
    scope: Mapping[str, Any], messages: Sequence[Message], sampling: Sampling, seed: int
) -> str:
    """Return the key of a request: 64 hex characters.

    `scope` has the other things that answers depend on, JSON-plain. Images are compared by their
    pixels, whatever their encoding.
    """
    request = {
        "format": FORMAT,
        "scope": scope,
        "messages": [_canonical_message(message) for message in messages],
        "sampling": [sampling.temperature, sampling.top_p, sampling.max_tokens],
        "seed": seed,
    }
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _canonical_message(message: Message) -> list[Any]:
    """Return what counts of a message; what it has of tools comes last, if it has any."""
    fields: Mapping[str, Any] = message
    tool_fields = {key: fields[key] for key in _TOOL_FIELDS if key in fields}
    plain = [message["role"], _canonical_content(message["content"])]
    return [*plain, tool_fields] if tool_fields else plain


def _canonical_content(content: str | list[dict[str, Any]]) -> str | list[list[Any]]:
    if isinstance(content, str):
        return content
    return [_canonical_part(part) for part in content]


def _canonical_part(part: Mapping[str, Any]) -> list[Any]:
    if part["type"] == "text":
        return ["text", part["text"]]
    if part["type"] == "image_url":
        return ["image", _image_digest(part["image_url"]["url"])]
    return [part["type"], part]


@lru_cache(128)
def _image_digest(address: str) -> str:
    """Return the digest of the image in a data URL; for another address, the address itself."""
    kind, _, content = address.partition(",")
    if kind != PNG_ADDRESS:
        return address
    try:
        return digest(decode_png(base64.b64decode(content)))
    except (BadRequest, ValueError):
        return address


def _to_json(answer: Answer) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "text": answer.text,
        "finished": answer.finished,
        "usage": [answer.prompt, answer.response, 1],
    }
    if answer.calls:
        fields["calls"] = [[call.id, call.name, call.arguments] for call in answer.calls]
    thoughts = {"reasoning": answer.reasoning, "reasoning_tokens": answer.reasoning_tokens}
    return fields | {name: value for name, value in thoughts.items() if value not in ("", None)}


def _from_json(fields: Mapping[str, Any]) -> Answer:
    prompt, response, _ = fields["usage"]
    reasoning = str(fields.get("reasoning", ""))
    thought = fields.get("reasoning_tokens")
    calls = tuple(ServedCall(*call) for call in fields.get("calls", ()))
    text, finished = fields["text"], fields["finished"]
    return Answer(
        text, finished, prompt, response, reasoning, calls=calls, reasoning_tokens=thought
    )
