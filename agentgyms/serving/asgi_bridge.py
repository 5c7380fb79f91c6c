"""Answers of an ASGI application to the requests of threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

_POLL_S: Final = 0.5
_START_S: Final = 60.0
_END_S: Final = 5.0

Message = MutableMapping[str, Any]
AsgiApp = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class Gone(Exception):
    """The client has left before its answer."""


class Answered(NamedTuple):
    """An application's answer to a request."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class AsgiBridge:
    """Runs an ASGI application in a daemon thread's event loop; no answer is a stream."""

    def __init__(self, app: AsgiApp) -> None:
        """Start the application; raise `RuntimeError` if it says that it cannot start."""
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._turn, name="asgi", daemon=True)
        self._thread.start()
        self._lifespan = self._run(self._live())
        self._tell("lifespan.startup")
        self._started.result(_START_S)

    def ask(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        has_left: Callable[[], bool] = lambda: False,
    ) -> Answered:
        """Return the answer, whatever is raised; raise `Gone` once the client `has_left`."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in headers],
        }
        asked: Future[Answered] = self._run(self._answer(scope, body))
        while True:
            try:
                return asked.result(_POLL_S)
            except TimeoutError:
                if asked.done():
                    raise
                if has_left():
                    asked.cancel()
                    raise Gone from None

    def close(self) -> None:
        """End the application, and the loop."""
        self._tell("lifespan.shutdown")
        try:
            self._lifespan.result(_END_S)
        except TimeoutError:
            self._lifespan.cancel()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_S)

    def _turn(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_cancel_all())
        self._loop.close()

    def _run(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _tell(self, kind: str) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, {"type": kind})

    async def _live(self) -> None:
        async def send(message: Message) -> None:
            if message["type"].endswith("failed"):
                raise RuntimeError(f"the application does not start: {message.get('message', '')}")
            if message["type"] == "lifespan.startup.complete":
                self._started.set_result(None)

        try:
            await self._app({"type": "lifespan"}, self._events.get, send)
        except BaseException as e:
            if self._started.done():
                raise
            self._started.set_exception(e)

    async def _answer(self, scope: Message, body: bytes) -> Answered:
        coming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        parts: list[bytes] = []
        begun: Message = {}

        async def receive() -> Message:
            if not coming:
                await asyncio.Event().wait()  # a client that leaves cancels the whole request
            return coming.pop()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.update(message)
            else:
                parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in begun.get("headers", ())]
        return Answered(begun["status"], headers, b"".join(parts))


async def _cancel_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
