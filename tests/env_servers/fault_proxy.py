"""A proxy between a client and a server in which requests and replies meet with accidents.

It is a real one: bytes come in at one socket and go out at another, so that client, server and
their HTTP libraries see what a bad network or a gateway would do to them.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, Self

from ports import free_port

RESET: Final = struct.pack("ii", 1, 0)
LONGEST_DELAY_S: Final = 10.0
REFUSED_S: Final = 0.02
HTML: Final = b"<html><body><h1>Bad Gateway</h1></body></html>"


class Request(NamedTuple):
    """One request as it came in."""

    number: int
    method: str
    path: str
    raw: bytes

    @property
    def operation(self) -> str:
        """What is asked, such as `step` or `batch/step`; the last word of the path."""
        parts = self.path.partition("?")[0].strip("/").split("/")
        return "/".join(parts[1:]) if "batch" in parts else parts[-1]


class FaultProxy:
    """Passes requests on to one server, each as its fate will have it.

    Args:
        url: The server's address.
        choose: Returns the fate of a request: the name of a method of `Fates`.
        read_s: How long the client waits for a reply; what is late comes later than that.

    Attributes:
        requests: What has come in, with its fate.
    """

    def __init__(
        self, url: str, choose: Callable[[Request], str] | None = None, read_s: float = 0.25
    ) -> None:
        host, _, port = url.partition("://")[2].partition(":")
        self.target, self.read_s = (host, int(port)), read_s
        self.choose = choose or (lambda _: "normal")
        self.requests: list[tuple[Request, str]] = []
        self._passed, self._settling = 0, False
        self._tasks: set[asyncio.Task[None]] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._port = free_port()
        self._server = self._wait(self._listen(self._port))
        self.url = f"http://127.0.0.1:{self._port}"
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()
        self._wait(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def settle(self) -> None:
        """Let what is late arrive now."""

        async def rest() -> None:
            self._settling = True
            while self._tasks:
                await asyncio.wait(self._tasks)
            self._settling = False

        self._wait(rest())

    def counts(self) -> Counter[str]:
        """Return how many requests of each fate there were."""
        return Counter(fate for _, fate in self.requests)

    def asked(self) -> list[str]:
        """Return the operations asked for, in order."""
        return [request.operation for request, _ in self.requests]

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _end(self) -> None:
        self._server.close()
        while rest := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in rest:
                task.cancel()
            await asyncio.wait(rest)
            await asyncio.sleep(0.001)  # a connection that has just come in has its task now

    async def _listen(self, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._enter, "127.0.0.1", port, limit=2**24, backlog=512)

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)  # nobody else holds it once its client has gone
        try:
            going_on = True
            while going_on:
                request = await self._read(reader)
                fate = self.choose(request)
                self.requests.append((request, fate))
                going_on = await getattr(self, fate)(request, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one side has gone, or the proxy ends
        finally:
            self._serving.discard(task)
            _reset(writer)

    async def _read(self, reader: asyncio.StreamReader) -> Request:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(_length(head))
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        return Request(len(self.requests), method, path, head + body)

    async def _forward(self, request: Request, *, slowly: bool = False) -> bytes:
        """Send a request over a connection of its own and return the whole reply."""
        reader, writer = await asyncio.open_connection(*self.target, limit=2**24)
        try:
            if slowly:
                await _trickle(writer, request.raw)
            else:
                writer.write(request.raw)
            head = await reader.readuntil(b"\r\n\r\n")
            reply = head + await reader.readexactly(_length(head))
        finally:
            writer.close()
        self._passed += 1
        return reply

    def _later(self, request: Request, others: int) -> None:
        """Deliver a copy of a request after some others have passed, and forget the reply."""

        async def deliver() -> None:
            goal = self._passed + others
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_DELAY_S):
                    while self._passed < goal and not self._settling:
                        await asyncio.sleep(0.002)
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._forward(request)

        self._do(deliver())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- fates: each returns whether the client's connection goes on -----------------------------

    async def normal(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Nothing happens."""
        writer.write(await self._forward(request))
        return True

    async def twice(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The server gets it twice at once."""
        both = await asyncio.gather(self._forward(request), self._forward(request))
        writer.write(both[request.number % 2])
        return True

    async def again_later(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The server gets another copy after later requests."""
        writer.write(await self._forward(request))
        self._later(request, others=1 + request.number % 7)
        return True

    async def again_at_last(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The server gets another copy when all is over, the session closed."""
        writer.write(await self._forward(request))
        self._later(request, others=1_000_000)
        return True

    async def overtaken(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The connection breaks off, and the request arrives after later ones."""
        self._later(request, others=1 + request.number % 3)
        return False

    async def late(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """It arrives when the client has just lost patience, and meets what it does then."""
        await asyncio.sleep(self.read_s + 0.005)
        await self._forward(request)
        return False

    async def late_reply(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The server acts, but the client loses patience before the reply comes."""
        reply = await self._forward(request)
        await asyncio.sleep(self.read_s + 0.05)
        writer.write(reply)
        return False

    async def request_lost(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """It never arrives, and the connection breaks off."""
        return False

    async def reply_lost(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The server acts, and the connection breaks off."""
        await self._forward(request)
        return False

    async def reply_cut(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The server acts, and the connection ends amid the reply."""
        reply = await self._forward(request)
        writer.write(reply[: len(reply) * (1 + request.number % 9) // 10])
        writer.write_eof()
        await writer.drain()
        await asyncio.sleep(0.01)
        return False

    async def refused(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Nobody listens for a moment."""
        if self._server.is_serving():  # else another request has just had this fate
            self._server.close()
            self._do(self._listen_again())
        return False

    async def gateway(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """A gateway answers in the server's place."""
        writer.write(_page(502 + request.number % 2))
        return True

    async def gateway_after(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The server acts, and a gateway answers in its place."""
        await self._forward(request)
        writer.write(_page(502 + request.number % 3))
        return True

    async def trickled(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """It arrives byte by byte, and so does the reply."""
        await _trickle(writer, await self._forward(request, slowly=True))
        return True

    async def _listen_again(self) -> None:
        await asyncio.sleep(REFUSED_S)
        self._server = await self._listen(self._port)


QUICK: Final = (
    *("twice", "again_later", "again_at_last", "overtaken", "request_lost"),
    *("reply_lost", "reply_cut", "refused", "gateway", "gateway_after"),
)
SLOW: Final = ("late", "late_reply", "trickled")


def by_chance(seed: int, rate: float, fates: tuple[str, ...]) -> Callable[[Request], str]:
    """Return what chooses one of `fates` with probability `rate`."""
    rng = random.Random(seed)

    def choose(_: Request) -> str:
        return rng.choice(fates) if rng.random() < rate else "normal"

    return choose


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        link = writer.get_extra_info("socket")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _page(status: int) -> bytes:
    head = f"HTTP/1.1 {status} Gone\r\nContent-Type: text/html\r\nContent-Length: {len(HTML)}\r\n"
    return head.encode() + b"\r\n" + HTML


async def _trickle(writer: asyncio.StreamWriter, content: bytes) -> None:
    link = writer.get_extra_info("socket")
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(len(content)):
        writer.write(content[i : i + 1])
        await writer.drain()
        if i % 50 == 0:
            await asyncio.sleep(0)
