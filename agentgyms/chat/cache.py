"""A model's answers on disk: an equal request, in whichever process, is answered from there.

A key is the SHA-256 of all that an answer depends on: the server's address, the model's name there
and what it loaded under that name, the fields of each request, messages, sampling and seed. The
address belongs to it because two servers may give different models one name. A server that is
started anew with other weights under the same name, in the same place, cannot be told from the old
one: go without the cache there.

The file holds answers and hashes, neither prompts nor keys of services.
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

from agentgyms.chat.answer_store import AnswerStore
from agentgyms.chat.values import Answer, Message, Sampling
from agentgyms.errors import BadRequest
from agentgyms.images import decode_png, digest

_T = TypeVar("_T")

FORMAT: Final = 1
"""Part of every key: what earlier versions kept is not read."""

_NAME: Final = "answers.sqlite"

PNG_ADDRESS: Final = "data:image/png;base64"
"""How the address of an image begins that holds it, up to the comma."""


class Scoped(Protocol):
    """A client that says what its answers depend on, such as `agentgyms.chat.client.ChatClient`."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        """Return the answer to `messages`."""
        ...

    def scope(self) -> dict[str, Any]:
        """Return what an answer depends on besides messages, sampling and seed, JSON-plain."""
        ...

    def report(self) -> dict[str, Any]:
        """Return what the run of requests was like, JSON-plain."""
        ...

    async def close(self) -> None:
        """Let everything go that it holds."""
        ...


class CachedClient:
    """Answers from a file what was asked before, and asks the client for the rest.

    Only answers are kept: what failed is asked again. Answers from the file have the usage they had
    when they were given, so that two evaluations count the same tokens.

    Equal requests that are under way at once are asked once.

    Args:
        client: Who is asked.
        path: The file, or a folder for `answers.sqlite`; None takes the user's cache folder.

    Attributes:
        hits: Answers from the file.
        misses: Answers that had to be asked for.
    """

    def __init__(self, client: Scoped, path: str | Path | None = None) -> None:
        """Open nothing yet."""
        self.client = client
        self.hits = self.misses = 0
        self._store = AnswerStore(_file_of(path))
        self._thread = ThreadPoolExecutor(1, "answers")  # SQLite may wait for a disk
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        """Return the answer to `messages`, from the file if it is there.

        Raises:
            BadOption: As the client does.
            ModelUnavailable: As the client does.
        """
        key = key_of(self.client.scope(), messages, sampling, seed)
        lock = self._asking.setdefault(key, asyncio.Lock())
        async with lock:
            kept = await self._in_thread(lambda: self._store.get(key))
            if kept is not None:
                self.hits += 1
                return _answer(kept)
            answer = await self.client.complete(messages, sampling, seed)
            self.misses += 1
            fields = _fields(answer)
            return _answer(await self._in_thread(lambda: self._store.put(key, fields)))

    async def forget(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> None:
        """Keep the answer to `messages` no longer."""
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
        """Return the client's report, with what came from the file."""
        counts = {"hits": self.hits, "misses": self.misses, "damaged": self._store.damaged}
        return self.client.report() | {"cache": counts}

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def default_path() -> Path:
    """Return where answers are kept unless a configuration says otherwise."""
    return Path(platformdirs.user_cache_dir("agentgyms")) / _NAME


def _file_of(path: str | Path | None) -> Path:
    if not path:
        return default_path()
    return Path(path) / _NAME if Path(path).is_dir() else Path(path)


def key_of(
    scope: Mapping[str, Any], messages: Sequence[Message], sampling: Sampling, seed: int
) -> str:
    """Return the key of a request: 64 hex characters.

    Args:
        scope: What answers depend on besides the rest, JSON-plain.
        messages: Images count by their pixels, however they are packed.
        sampling: How to sample.
        seed: Of the decision.
    """
    asked = {
        "format": FORMAT,
        "scope": scope,
        "messages": [[message["role"], _counted(message["content"])] for message in messages],
        "sampling": [sampling.temperature, sampling.top_p, sampling.max_tokens],
        "seed": seed,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _counted(content: str | list[dict[str, Any]]) -> str | list[list[Any]]:
    if isinstance(content, str):
        return content
    return [_counted_part(part) for part in content]


def _counted_part(part: Mapping[str, Any]) -> list[Any]:
    if part["type"] == "text":
        return ["text", part["text"]]
    if part["type"] == "image_url":
        return ["image", _digest_of(part["image_url"]["url"])]
    return [part["type"], part]


@lru_cache(128)
def _digest_of(address: str) -> str:
    """Return the digest of the image at an address; where that does not hold it, the address."""
    kind, _, content = address.partition(",")
    if kind != PNG_ADDRESS:
        return address
    try:
        return digest(decode_png(base64.b64decode(content)))
    except (BadRequest, ValueError):
        return address


def _fields(answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "finished": answer.finished,
        "usage": [answer.prompt, answer.response, 1],
    }


def _answer(fields: Mapping[str, Any]) -> Answer:
    prompt, response, _ = fields["usage"]
    return Answer(fields["text"], fields["finished"], prompt, response)
