"""Asks models from ordinary code: many threads may wait at once, and equal requests are one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import asdict
from typing import Any, cast
from weakref import WeakSet

from gymnasium.error import DependencyNotInstalled

from agentgyms import extras
from agentgyms.chat import bridge
from agentgyms.chat.models import Model, read_model
from agentgyms.chat.values import Answer, Message
from agentgyms.errors import ModelUnavailable

__all__ = ["Asker", "Model", "read_model"]


class Asker:
    """Asks one model. Threads and forked processes may share it.

    Models that differ only in sampling and prices share one client, and with it the limits of
    their server. The key is read from the environment once, here; without one requests go without.

    Args:
        model: Who is asked.

    Raises:
        DependencyNotInstalled: The extra that brings the HTTP client is missing.
        BadOption: The model has a value that it cannot have.
    """

    def __init__(self, model: Model) -> None:
        """Connect to nothing yet."""
        self.model = model
        self._secret = os.environ.get(model.key_variable)
        self._key = (_what_decides(model), self._secret)
        self._waited_for: set[Future[Any]] = set()
        self._connection()

    def ask(self, messages: Sequence[Message], seed: int) -> Answer:
        """Return the answer; equal messages and seeds have equal ones while the cache is kept.

        Whatever ends the wait, such as a `KeyboardInterrupt`, ends the request.

        Raises:
            ModelUnavailable: Every attempt failed (an `EnvUnavailable`: no verdict on the agent).
            BadOption: The server refuses the request and would refuse it again.
        """
        answer: Answer = self._done(
            lambda client: client.complete(messages, self.model.sampling, seed)
        )
        return answer

    def forget(self, messages: Sequence[Message], seed: int) -> None:
        """Keep an answer that is of no use no longer: who asks again gets another one."""
        if self.model.cache:
            self._done(lambda client: client.forget(messages, self.model.sampling, seed))

    def _done(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        """Return what the client's work comes to."""
        with bridge.lock():  # else it could be closed in between
            connection = self._connection()
            future = connection.begin(work)
            self._waited_for.add(future)
        try:
            return future.result()
        except CancelledError:
            raise ModelUnavailable(
                f"{self.model.name!r} gave no answer: the request was ended before"
            ) from None
        finally:
            future.cancel()
            connection.under_way.discard(future)
            self._waited_for.discard(future)

    def interrupt(self) -> None:
        """End the requests that other threads wait for: those raise `ModelUnavailable`."""
        for future in list(self._waited_for):
            future.cancel()

    def report(self) -> dict[str, Any]:
        """Return what the requests were like, JSON-plain: counts, retries, waits, cache hits.

        Those of this process, and of all that share the client.
        """
        return self._connection().report()

    def close(self) -> None:
        """Give the client back: it is closed once nobody has it. To ask again opens another one."""
        with bridge.lock():
            for connection in _connections().values():
                connection.users.discard(self)
            _close_unused()

    def _connection(self) -> _Connection:
        """Return the connection of this process, made if there is none."""
        with bridge.lock():
            connections = _connections()
            if self._key not in connections:
                _close_unused()  # those of askers that were forgotten
                connections[self._key] = _Connection(self.model, self._secret)
            connections[self._key].users.add(self)
            return connections[self._key]


class _Connection:
    """A client in one process, with those who have it."""

    def __init__(self, model: Model, secret: str | None) -> None:
        self.client = _client(model, secret)
        self.users: WeakSet[Asker] = WeakSet()
        self.under_way: set[Future[Any]] = set()

    def begin(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Future[Any]:
        future = bridge.here().begin(work(self.client))
        self.under_way.add(future)
        return future

    def report(self) -> dict[str, Any]:
        told: dict[str, Any] = self.client.report()
        return told

    def close(self) -> None:
        for future in list(self.under_way):
            future.cancel()
        if bridge.here().started:  # else nothing was opened; nobody waits: this may be the loop
            bridge.here().begin(self._close())

    async def _close(self) -> None:
        with suppress(OSError, RuntimeError):  # what cannot be closed well is gone as well
            await self.client.close()


def _connections() -> dict[Any, _Connection]:
    return cast("dict[Any, _Connection]", bridge.here().kept)


def _close_unused() -> None:
    connections = _connections()
    for key in [key for key, connection in connections.items() if not connection.users]:
        connections.pop(key).close()


def _what_decides(model: Model) -> str:
    """Return all of a model that its client depends on."""
    fields = asdict(model)
    for name in ("sampling", "price_prompt", "price_response", "key_variable"):
        del fields[name]
    return json.dumps(fields, sort_keys=True, default=repr)


def _client(model: Model, secret: str | None) -> Any:
    try:
        from agentgyms.chat.cache import CachedClient
        from agentgyms.chat.client import ChatClient
    except ModuleNotFoundError as e:
        said = extras.advice(e, "sotopia")
        if not said:
            raise
        raise DependencyNotInstalled(f"a model behind a server cannot be asked: {said}") from None
    client = ChatClient(model.name, model.url, secret, model.service, model.extra)
    return CachedClient(client, model.cache_path) if model.cache else client
