"""A synchronous client of models: many threads may use it at once; equal requests are sent once."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import asdict
from queue import Empty, SimpleQueue
from typing import Any, Final, cast
from weakref import WeakSet

from gymnasium.error import DependencyNotInstalled

from agentgyms.core import imports
from agentgyms.core.errors import ModelUnavailable
from agentgyms.models import loop_thread
from agentgyms.models.model_config import Model, read_model
from agentgyms.models.types import Answer, Message

__all__ = ["Model", "SyncChatClient", "read_model"]

_SIGNALS_S: Final = 0.2
"""A signal that comes just before a wait is handled after this time at the latest."""


class SyncChatClient:
    """Sends requests to one model. Threads and forked processes may share it.

    Models that differ only in sampling and prices share one asynchronous client, and so the rate
    limits of their server. The key is read from the environment once, on creation. Raises
    `BadOption` for an invalid model, `DependencyNotInstalled` without the HTTP client.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._secret = os.environ.get(model.key_variable)
        # The settings of a model that its client depends on.
        fields = asdict(model)
        for name in ("sampling", "price_prompt", "price_response", "key_variable"):
            del fields[name]
        self._key = (json.dumps(fields, sort_keys=True, default=repr), self._secret)
        self._pending: set[Future[Any]] = set()
        self._connection()

    def complete(self, messages: Sequence[Message], seed: int) -> Answer:
        """Return the answer; with a cache, equal messages and seeds have equal answers.

        An exception that ends the wait, such as a `KeyboardInterrupt`, cancels the request. Raises
        `ModelUnavailable` if every attempt failed, `BadOption` if the request is rejected.
        """
        answer: Answer = self._run(
            lambda client: client.complete(messages, self.model.sampling, seed)
        )
        return answer

    def forget(self, messages: Sequence[Message], seed: int) -> None:
        """Delete a useless answer from the cache, so that the next request gets another one."""
        if self.model.cache:
            self._run(lambda client: client.forget(messages, self.model.sampling, seed))

    def _run(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        future: Future[Any] = Future()
        ended: SimpleQueue[Future[Any]] = SimpleQueue()
        future.add_done_callback(ended.put)
        connection: _Connection | None = None
        # An interrupt may come at any line: also after the request began, before `submit` returns.
        try:
            with loop_thread.lock():  # otherwise it could be closed in between
                connection = self._connection()
                self._pending.add(future)
                connection.submit(work, future)
            _wait(ended)
            return future.result()
        except CancelledError:
            raise ModelUnavailable(
                f"{self.model.name!r} gave no answer: the request was cancelled"
            ) from None
        finally:
            future.cancel()
            self._pending.discard(future)
            if connection is not None:
                connection.pending.discard(future)

    def interrupt(self) -> None:
        """Cancel the requests of other threads: they raise `ModelUnavailable`."""
        with loop_thread.lock():  # a request that is on its way is among them
            pending = list(self._pending)
        for future in pending:
            future.cancel()

    def report(self) -> dict[str, Any]:
        """Return the statistics of all who share the client in this process, JSON-plain."""
        return self._connection().report()

    def close(self) -> None:
        """Release the client, which is closed after its last user; a later request opens one."""
        with loop_thread.lock():
            for connection in _connections().values():
                connection.users.discard(self)
            _close_unused()

    def _connection(self) -> _Connection:
        """Return this process's connection, created on first use."""
        with loop_thread.lock():
            connections = _connections()
            if self._key not in connections:
                _close_unused()  # those of deleted clients
                connections[self._key] = _Connection(self.model, self._secret)
            connections[self._key].users.add(self)
            return connections[self._key]


class _Connection:
    def __init__(self, model: Model, secret: str | None) -> None:
        try:
            from agentgyms.models.cache import CachedClient
            from agentgyms.models.client import ChatClient
        except ModuleNotFoundError as e:
            advice = imports.advice(e, "sotopia")
            if not advice:
                raise
            raise DependencyNotInstalled(f"requests to a model need a package: {advice}") from None
        client = ChatClient(model.name, model.url, secret, model.service, model.extra)
        self.client = CachedClient(client, model.cache_path) if model.cache else client
        self.users: WeakSet[SyncChatClient] = WeakSet()
        self.pending: set[Future[Any]] = set()

    def submit(self, work: Callable[[Any], Coroutine[Any, Any, Any]], future: Future[Any]) -> None:
        self.pending.add(future)
        loop_thread.current().submit(work(self.client), future)

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = self.client.report()
        return report

    def close(self) -> None:
        for future in list(self.pending):
            future.cancel()
        if (
            loop_thread.current().started
        ):  # else nothing was opened; do not wait: this may be the loop
            loop_thread.current().submit(self._close())

    async def _close(self) -> None:
        with suppress(OSError, RuntimeError):  # a connection that cannot be closed is lost anyway
            await self.client.close()


def _wait(ended: SimpleQueue[Future[Any]]) -> None:
    """Wait for the end of a request so that an interrupt leaves no lock held.

    An interrupt in `Future.result` can leave its lock held, and the event loop would hang for ever.
    """
    # Python handles signals in the main thread alone.
    handles_signals = threading.current_thread() is threading.main_thread()
    while True:
        with suppress(Empty):
            ended.get(timeout=_SIGNALS_S if handles_signals else None)
            return


def _connections() -> dict[Any, _Connection]:
    return cast("dict[Any, _Connection]", loop_thread.current().resources)


def _close_unused() -> None:
    connections = _connections()
    for key in [key for key, connection in connections.items() if not connection.users]:
        connections.pop(key).close()
