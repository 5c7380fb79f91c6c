"""`python -m env_servers.gate`: relay connections to one server, and to nothing else.

A server whose agents run code must be in a network without access to others, where no port can be
published. This program is in both networks: it relays connections from outside to that one server,
and opens no other connections.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import click

from agentgyms.cli import last_resort
from agentgyms.serving import open_files
from env_servers.observability import logs

MOST_CONNECTIONS: Final = 1024
CONNECT_LIMIT_S: Final = 5.0
IDLE_LIMIT_S: Final = 1800.0
"""Longer than a session lives, and than a server keeps a silent connection."""

_BUFFER: Final = 1 << 16
_UNREAD_S: Final = 1.0
_OTHER_FILES: Final = 64
# A reset shows that the connection failed; after an ordinary close a reply would seem complete.
_RESET: Final = struct.pack("ii", 1, 0)
# A peer that has crashed is noticed after about five minutes; a slow one is not cut off.
_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 120, "TCP_KEEPINTVL": 30, "TCP_KEEPCNT": 6}

log = logging.getLogger("env_servers.gate")


class _Client:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._sent_at = 0.0
        self.server: asyncio.StreamReader | None = None
        """The stream from the server, once it is connected."""

    def note_sent(self) -> None:
        self._sent_at = asyncio.get_running_loop().time()

    def delays_since(self) -> float | None:
        """Return when data was sent last, if the client alone keeps the relay open; else None."""
        if self._unread():
            silent_s = asyncio.get_running_loop().time() - self._sent_at
            return self._sent_at if silent_s > _UNREAD_S else None
        return self._sent_at if self.server is not None and self.server.at_eof() else None

    def leave(self) -> None:
        """Close the connection; what is unread is lost."""
        if self._unread():
            _reset(self._writer)
        else:
            self._writer.close()

    def _unread(self) -> int:
        return self._writer.transport.get_write_buffer_size()


class Gate:
    """Relays TCP connections to one address, looked up for each connection.

    At most `most_connections` are open, fewer if this process may not open two files for each. One
    more takes the place of one whose client stays after the server's end or does not read, else is
    reset. A connection without data for `idle_limit_s` is reset.
    """

    def __init__(
        self,
        host: str,
        port: int,
        most_connections: int = MOST_CONNECTIONS,
        idle_limit_s: float = IDLE_LIMIT_S,
    ) -> None:
        self._host, self._port = host, port
        self._idle_limit_s = idle_limit_s
        files = open_files.allow(2 * MOST_CONNECTIONS + _OTHER_FILES) - _OTHER_FILES
        self._most = min(most_connections, files // 2)
        self._relays: dict[asyncio.Task[None], _Client] = {}

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Listen for connections to relay, at a free port for 0; `OSError` if it cannot listen."""
        return await asyncio.start_server(self._enter, host, port, limit=_BUFFER, backlog=1024)

    async def quiet(self, at_once: asyncio.Event) -> None:
        """Wait until no connection is open any more, or until `at_once` is set."""
        ended = asyncio.create_task(at_once.wait())
        while self._relays and not ended.done():
            await asyncio.wait({ended, *self._relays}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()

    def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._relays) >= self._most and not self._make_room():
            log.warning("refused a connection: %d are open", len(self._relays))
            _reset(writer)
            return
        client = _Client(writer)
        relay = asyncio.create_task(self._relay(reader, writer, client))
        self._relays[relay] = client
        relay.add_done_callback(lambda done: self._relays.pop(done, None))

    def _make_room(self) -> bool:
        """Leave the client that has delayed its relay longest; return whether there is one."""
        delays = {
            relay: since
            for relay, client in self._relays.items()
            if (since := client.delays_since()) is not None
        }
        if not delays:
            return False
        self._relays.pop(min(delays, key=delays.__getitem__)).leave()
        return True

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: _Client
    ) -> None:
        try:
            async with asyncio.timeout(CONNECT_LIMIT_S):
                reader_there, writer_there = await asyncio.open_connection(
                    self._host, self._port, limit=_BUFFER
                )
        except OSError as e:
            log.warning("%s:%d does not answer: %s", self._host, self._port, e or "it took long")
            _reset(writer)
            return
        both = (writer, writer_there)
        client.server = reader_there
        try:
            for end in both:
                _watch(end)
            async with (
                asyncio.timeout(self._idle_limit_s) as limit,
                asyncio.TaskGroup() as both_ways,
            ):

                def extend_limit() -> None:
                    limit.reschedule(asyncio.get_running_loop().time() + self._idle_limit_s)

                def note_sent() -> None:
                    extend_limit()
                    client.note_sent()

                both_ways.create_task(_pass_on(reader, writer_there, extend_limit))
                both_ways.create_task(_pass_on(reader_there, writer, note_sent))
            for end in both:
                end.close()
                await end.wait_closed()
        except* OSError as errors:
            log.debug("a connection broke off: %s", errors.exceptions)
        finally:
            for end in both:
                _reset(end)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, moves: Callable[[], None]
) -> None:
    """Pass on bytes until one side ends, and then that end: the other direction may go on."""
    while chunk := await reader.read(_BUFFER):
        moves()
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()


def _watch(writer: asyncio.StreamWriter) -> None:
    link = writer.get_extra_info("socket")
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection off; one that is closed stays so."""
    link = writer.get_extra_info("socket")
    if link.fileno() >= 0:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()


async def _serve(
    gate: Gate, host: str, port: int, grace_s: float, greet: Callable[[int], None]
) -> None:
    stop, at_once = asyncio.Event(), asyncio.Event()

    def end() -> None:
        (at_once if stop.is_set() else stop).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
    server = await gate.listen(host, port)
    greet(server.sockets[0].getsockname()[1])
    await stop.wait()
    server.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await gate.quiet(at_once)


def _address(_context: click.Context, _option: click.Parameter, value: str) -> tuple[str, int]:
    host, _, port = value.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise click.BadParameter(f"{value!r}: expected a name or address, a colon and a port")
    return host.strip("[]"), int(port)


@click.command(context_settings={"show_default": True})
@click.option(
    "--to",
    "target",
    callback=_address,
    required=True,
    metavar="HOST:PORT",
    help="The server, such as appworld:8000.",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="0 takes a free one.")
@click.option(
    "--max-connections",
    type=click.IntRange(1, MOST_CONNECTIONS),
    default=MOST_CONNECTIONS,
    help="How many may be open at a time.",
)
@click.option(
    "--idle",
    type=click.FloatRange(0, min_open=True),
    default=IDLE_LIMIT_S,
    help="Seconds after which a connection without data is reset.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=8.0,
    help="Seconds that connections may take to end after SIGTERM.",
)
@logs.options
def main(
    target: tuple[str, int], host: str, port: int, max_connections: int, idle: float, grace: float
) -> None:
    """Relay TCP connections to one server, which itself must ask for a token if one is needed."""
    logs.set_up()
    gate = Gate(*target, max_connections, idle)

    def greet(bound: int) -> None:
        click.echo(f"gate to {target[0]}:{target[1]} at {host}:{bound}")

    try:
        asyncio.run(_serve(gate, host, port, grace, greet))
    except OSError as e:
        raise click.ClickException(f"cannot listen on {host}:{port}: {e.strerror or e}") from None


if __name__ == "__main__":
    last_resort.run("env_servers", partial(main, prog_name="python -m env_servers.gate"))
