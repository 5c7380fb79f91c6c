"""A completer's answers on disk: an equal request, in whichever evaluation, is answered from there.

A key is the SHA-256 of all that an answer depends on: the server's address, the model's name there
and what it loaded under that name, the fields of each request, messages, sampling and seed. The
address belongs to it because two servers may give different models one name. A server that is
started anew with other weights under the same name, in the same place, cannot be told from the old
one: go without the cache there (`service.cache = false`).

The file holds answers and hashes, neither prompts nor keys of services.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

import platformdirs

from harness.completers import Content, Message, Sampling, images_of
from harness.completers.answer_store import AnswerStore
from harness.rollout import Completion, Usage

_T = TypeVar("_T")

FORMAT: Final = 1
"""Part of every key: what earlier versions kept is not read."""


class Scoped(Protocol):
    """A completer that says what its answers depend on."""

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response; see `harness.completers.Completer`."""
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


class CachedCompleter:
    """Answers from a file what was asked before, and asks the completer for the rest.

    Only answers are kept: what failed is asked again. Answers from the file have the usage they had
    when they were given, so that two evaluations count the same tokens. Token ids and
    log-probabilities are not kept.

    Equal requests that are under way at once are asked once.

    Args:
        completer: Who is asked.
        path: The file; None takes `answers.sqlite` in the user's cache folder.

    Attributes:
        hits: Answers from the file.
        misses: Answers that had to be asked for.
    """

    def __init__(self, completer: Scoped, path: str | Path | None = None) -> None:
        """Open nothing yet."""
        self.completer = completer
        self.hits = self.misses = 0
        self._store = AnswerStore(Path(path) if path else default_path())
        self._thread = ThreadPoolExecutor(1, "answers")  # SQLite may wait for a disk
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`, from the file if it is there.

        Raises:
            ConfigError: As the completer does.
            ModelUnavailable: As the completer does.
        """
        key = key_of(self.completer.scope(), messages, sampling, seed)
        lock = self._asking.setdefault(key, asyncio.Lock())
        async with lock:
            kept = await self._in_thread(lambda: self._store.get(key))
            if kept is not None:
                self.hits += 1
                return _completion(kept, messages)
            completion = await self.completer.complete(messages, sampling, seed)
            self.misses += 1
            fields = _fields(completion)
            kept = await self._in_thread(lambda: self._store.put(key, fields))
            return completion if kept == fields else _completion(kept, messages)

    async def close(self) -> None:
        """Close the file and the completer."""
        await self._in_thread(self._store.close)
        self._thread.shutdown()
        await self.completer.close()

    def report(self) -> dict[str, Any]:
        """Return the completer's report, with what came from the file."""
        counts = {"hits": self.hits, "misses": self.misses, "damaged": self._store.damaged}
        return self.completer.report() | {"cache": counts}

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def default_path() -> Path:
    """Return where answers are kept unless a configuration says otherwise."""
    return Path(platformdirs.user_cache_dir("agentgyms")) / "answers.sqlite"


def key_of(
    scope: Mapping[str, Any], messages: Sequence[Message], sampling: Sampling, seed: int
) -> str:
    """Return the key of a request: 64 hex characters.

    Args:
        scope: What answers depend on besides the rest, JSON-plain.
        messages: Images count by their digest; the token ids of answers do not count.
        sampling: How to sample.
        seed: Of the decision.
    """
    asked = {
        "format": FORMAT,
        "scope": scope,
        "messages": [[message["role"], _plain(message["content"])] for message in messages],
        "sampling": [sampling.temperature, sampling.top_p, sampling.max_tokens],
        "seed": seed,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _plain(content: Content) -> str | list[list[str]]:
    if isinstance(content, str):
        return content
    return [
        ["text", part["text"]] if part["type"] == "text" else ["image", part["image"].digest]
        for part in content
    ]


def _fields(completion: Completion) -> dict[str, Any]:
    usage = completion.usage
    return {
        "text": completion.text,
        "finished": completion.finished,
        "usage": [usage.prompt, usage.response, usage.calls],
    }


def _completion(fields: Mapping[str, Any], messages: Sequence[Message]) -> Completion:
    usage, shown = Usage(*fields["usage"]), images_of(messages)
    return Completion(fields["text"], finished=fields["finished"], images=shown, usage=usage)
