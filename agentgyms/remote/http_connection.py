"""Connections of `http.client`, made quick for requests and replies as small as those of a step."""

from __future__ import annotations

import http.client
import select
import socket
from typing import Any, Final

_LONGEST_LINE: Final = 65_536
_MOST_HEADERS: Final = 100


class Response(http.client.HTTPResponse):
    """A reply whose head is read line by line.

    The standard library reads it with its parser for e-mails, which takes longer than all the rest
    of a request.
    """

    def __init__(self, sock: socket.socket, *, method: str | None = None) -> None:
        super().__init__(sock, method=method)
        self._bodyless = method == "HEAD"

    def begin(self) -> None:
        """Read the head: status, headers, and how the body's end will be known."""
        self.status = 100
        while 100 <= self.status < 200:
            protocol, self.status, self.reason = _status(self._line())
            self.headers = self.msg = self._read_headers()
        self.code, self.version = self.status, 10 if protocol == "HTTP/1.0" else 11
        tokens = self.headers.get("Connection", "").lower()
        self.will_close = "keep-alive" not in tokens if self.version == 10 else "close" in tokens
        self.chunked = self.headers.get("Transfer-Encoding", "").lower() == "chunked"
        self.chunk_left = None
        self.length = None if self.chunked else self._body_length()
        self.will_close |= self.length is None and not self.chunked

    def _read_headers(self) -> http.client.HTTPMessage:
        headers = http.client.HTTPMessage()
        for _ in range(_MOST_HEADERS + 1):
            line = self._line()
            if not line.strip():
                return headers
            name, colon, value = line.partition(":")
            if not colon or name != name.strip():
                raise http.client.HTTPException(f"this is no header: {line!r:.80}")
            headers.set_raw(name, value.strip())
        raise http.client.HTTPException(f"got more than {_MOST_HEADERS} headers")

    def _body_length(self) -> int | None:
        if self._bodyless or self.status in (204, 304):
            return 0
        given = self.headers.get("Content-Length")
        if given is not None and not (given.isascii() and given.isdigit()):
            raise http.client.HTTPException(f"this is no length: {given!r:.80}")
        return None if given is None else int(given)

    def _line(self) -> str:
        line: bytes = self.fp.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise http.client.LineTooLong("header line")
        if not line:
            raise http.client.RemoteDisconnected("Remote end closed connection without response")
        return line.decode("latin-1")


def _status(line: str) -> tuple[str, int, str]:
    protocol, _, rest = line.strip().partition(" ")
    status, _, reason = rest.partition(" ")
    if not (protocol.startswith("HTTP/1.") and len(status) == 3 and status.isdecimal()):
        raise http.client.HTTPException(f"this is no reply of HTTP: {line!r:.80}")
    return protocol, int(status), reason


class Connection(http.client.HTTPConnection):
    """A connection that sends a request's head and body at once, in one packet if they fit."""

    response_class = Response
    sock: socket.socket | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._parts: list[bytes] = []
        self._limit_s = -1.0

    def send(self, data: Any) -> None:
        """Keep a part of a request."""
        self._parts.append(data)

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Send a request."""
        self._parts.clear()
        super().request(*args, **kwargs)
        super().send(b"".join(self._parts))

    def wait_at_most(self, seconds: float) -> None:
        """Set the longest time until something comes."""
        if self._limit_s != seconds and self.sock is not None:
            self.sock.settimeout(seconds)
            self._limit_s = seconds

    @property
    def dropped(self) -> bool:
        """Whether the other side has closed the connection, or says something unasked."""
        if self.sock is None:
            return True
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0))


class SecureConnection(Connection, http.client.HTTPSConnection):
    """The same over TLS."""
