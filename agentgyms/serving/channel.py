"""Connections: bounds on what they hold, and replies in one packet, so that a client wakes once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from waitress.buffers import OverflowableBuffer
from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.task import ErrorTask, Task, WSGITask
from waitress.utilities import BadRequest

from agentgyms.serving.guesses import Guesses
from agentgyms.serving.served import LEFT_FOR_S
from agentgyms.serving.token_access import TOKEN_HEADERS

MOST_HEADER_BYTES: Final = 1 << 15
"""Longest head of a request, and most bytes between the chunks of a body."""

IN_MEMORY: Final = 1 << 40
"""More than a body or a reply can have, so that none takes a file."""

_BEGINS: Final = frozenset(b"\r\n" + bytes(range(0x20, 0x7F)))
"""Bytes that a request, or the blank line before it, may begin with; TLS begins with others."""

_NO_HTTP: Final = "this port speaks HTTP without TLS: use http://, or a proxy that ends TLS"

_FORM_BYTES: Final = 4096
_FORM: Final = "application/x-www-form-urlencoded"

MOST_QUEUED: Final = 8
"""Most requests that a connection may have waiting, the one being answered included."""


class Terms(NamedTuple):
    """The conditions on which a server keeps requests.

    `has_token` decides by the headers; `max_body_bytes` is the longest body of a client with a
    token.
    """

    has_token: Callable[[Mapping[str, str]], bool]
    max_body_bytes: int


class Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """Reads a request; `met` is called as soon as its head shows that the client has the token."""

    def __init__(self, adj: Any, terms: Terms, met: Callable[[], None]) -> None:
        super().__init__(adj)
        self._terms, self._met = terms, met

    @property
    def held(self) -> int:
        """How many bytes of it are kept so far."""
        body = self.body_rcv
        return len(self.header_plus) + (body.getbuf().held if body is not None else 0)

    def received(self, data: bytes) -> int:
        """Read a part of the request and return how many bytes belong to it."""
        if not self.header_bytes_received and data[0] not in _BEGINS:
            self.error, self.completed = BadRequest(_NO_HTTP), True
            return len(data)
        count = int(super().received(data))
        body = self.body_rcv
        if (
            isinstance(body, ChunkedReceiver)
            and len(body.control_line) + len(body.trailer) > MOST_HEADER_BYTES
        ):
            self.error, self.completed = BadRequest("a line between two chunks is too long"), True
        return count

    def parse_header(self, header_plus: bytes) -> Any:
        """Read the request line and the headers; raise `ParsingError` if they are no HTTP."""
        try:
            parsed = super().parse_header(header_plus)
        except ValueError as e:
            raise ParsingError("a number or an address that is none") from e
        known = self._terms.has_token(self.headers)
        if known:
            self._met()
        if self.body_rcv is not None:
            self.body_rcv.buf = _Body(self._terms.max_body_bytes if known else _FORM_BYTES)
        return parsed


class _Body(OverflowableBuffer):  # type: ignore[misc]
    """Keeps a body, or only the length of one that is too long, by which it is refused."""

    def __init__(self, most: int) -> None:
        super().__init__(IN_MEMORY)
        self._most, self._length = most, 0

    def append(self, data: bytes) -> None:
        self._length += len(data)
        if self._length <= self._most:
            super().append(data)
        else:
            self.close()
            self.buf, self.strbuf = None, b""

    @property
    def held(self) -> int:
        return int(super().__len__())

    def __len__(self) -> int:
        return self._length


class _OnePacket(Task):  # type: ignore[misc]  # waitress has no types
    """A request and its reply."""

    channel: Any

    def write(self, data: bytes) -> None:
        """Send a part of the body, the first one together with the head."""
        channel, self.channel = self.channel, _Parts(self.channel)
        try:
            super().write(data)
        finally:
            parts, self.channel = self.channel, channel
        if parts:
            channel.write_reply(b"".join(parts), self._guesses_token())

    def _guesses_token(self) -> bool:
        """Return whether this answers a wrong token, in a header or in the form for it."""
        if not self.status.startswith("401"):
            return False
        headers: dict[str, str] = self.request.headers
        tried = any(name in headers for name in TOKEN_HEADERS)
        return tried or headers.get("CONTENT_TYPE", "").startswith(_FORM)


class _Request(_OnePacket, WSGITask):  # type: ignore[misc]
    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        environ[LEFT_FOR_S] = self.channel.left_for_s
        return environ


class _ErrorReply(_OnePacket, ErrorTask):  # type: ignore[misc]
    """A request that waitress answers itself."""


class _Parts(list[bytes]):
    """Collects what is written to a connection."""

    def __init__(self, channel: Any) -> None:
        super().__init__()
        self.server = channel.server

    def write_soon(self, data: bytes) -> None:
        self.append(data)


class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection that holds little, whatever its client sends and does not read.

    Head and beginning of a body are one write, and a request waits until the reply before it is
    sent. More than `MOST_QUEUED` waiting requests end the connection. `guesses` delays wrong
    tokens. `known`: a request had the token; `left_at`: when the client left, on the monotonic
    clock.
    """

    task_class, error_task_class = _Request, _ErrorReply

    def __init__(self, *arguments: Any, terms: Terms, guesses: Guesses, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._guesses = guesses
        self._late: tuple[float, bytes] | None = None
        self.known = False
        self.left_at: float | None = None
        self._waits = False
        self.parser_class = partial(Parser, terms=terms, met=self._meet)

    @property
    def held(self) -> int:
        """How many bytes are kept for it: of its unread replies, and of a request that comes in."""
        request = self.request
        return int(self.total_outbufs_len) + (request.held if request is not None else 0)

    def received(self, data: bytes) -> bool:
        """Take what has come in."""
        accepted = bool(super().received(data))
        if len(self.requests) > MOST_QUEUED:
            self.drop()
        return accepted

    def service(self) -> None:
        """Answer the first request; of a client that has left, only do what ends sessions."""
        request = self.requests[0]
        if not self.connected and _ends_sessions(request):
            with suppress(ClientDisconnected):
                self.task_class(self, request).service()
        super().service()

    def drop(self) -> None:
        """Close at once, in the thread that owns it; `will_close` would wait for a reader."""
        self.will_close = True
        with self.requests_lock:
            del self.requests[1:]
        self.handle_close()

    def left_for_s(self) -> float:
        """Return how long the client has been gone, in seconds; -inf if it is there."""
        return -math.inf if self.left_at is None else time.monotonic() - self.left_at

    def may_go_on(self) -> bool:
        """Return whether the next request can be answered; else `handle_write` sees to it later."""
        with self.outbuf_lock:
            self._waits = self.total_outbufs_len > 0 or self._late is not None
            return not self._waits

    def write_reply(self, data: bytes, wrong_token: bool) -> None:
        """Send a part of a reply; that to a wrong token later, without holding the thread."""
        delay_s = self._guesses.delay_s(self.addr[0]) if wrong_token and not self.known else 0.0
        if not delay_s:
            self.write_soon(data)
            return
        with self.outbuf_lock:
            self._late = (time.monotonic() + delay_s, data)

    def write_late(self) -> None:
        """Send a late reply that is due. Called by the thread that owns the connections."""
        if self._late is None or time.monotonic() < self._late[0] or not self.connected:
            return
        with self.outbuf_lock:
            data, self._late = self._late[1], None
        self.write_soon(data)
        self._resume()

    def writable(self) -> bool:
        """Return whether there is something to send, or the connection is to be closed."""
        sendable = self.total_outbufs_len or self.close_when_flushed
        return bool(self.will_close or (sendable and self._late is None))

    def handle_write(self) -> None:
        """Send what is unsent, and let a request that waited for that be answered."""
        super().handle_write()
        self._resume()

    def _resume(self) -> None:
        with self.outbuf_lock:
            goes_on = self._waits and not self.total_outbufs_len and self.connected
            self._waits = self._waits and not goes_on
        if goes_on:
            self.server.add_task(self)

    def handle_close(self) -> None:
        """Close the connection, on which nothing is to be read or written any more."""
        if self.left_at is None:
            self.left_at = time.monotonic()
        super().handle_close()

    def _meet(self) -> None:
        self.known = True


def _ends_sessions(request: Any) -> bool:
    """Return whether a request ends sessions, which is done for clients that have left, too."""
    path: str = getattr(request, "path", "")
    return request.command == "DELETE" or path.endswith("/batch/close")
