"""Connections of `http.client` that are fast for small requests and replies, as those of a step."""

from __future__ import annotations

import http.client
import re
import select
import socket
from collections.abc import Mapping
from typing import Any, Final

_LONGEST_LINE: Final = 65_536
_MOST_HEADERS: Final = 100
_TARGET: Final = re.compile("[!-~]+")


class Response(http.client.HTTPResponse):
    """A reply whose headers are read line by line.

    The standard library's e-mail parser takes longer for them than all the rest of a request.
    """

    def __init__(self, sock: socket.socket, *, method: str | None = None) -> None:
        super().__init__(sock, method=method)
        self._bodyless = method == "HEAD"

    def begin(self) -> None:
        """Read status and headers, and find out how the end of the body is marked."""
        self.status = 100
        # replies 1xx, such as 100 Continue, precede the real one
        while 100 <= self.status < 200:
            protocol, self.status, self.reason = _status(self._line())
            self.headers = self.msg = self._read_headers()
        self.code, self.version = self.status, 10 if protocol == "HTTP/1.0" else 11
        # reversed, so that the first of several equal headers counts
        headers = {name.lower(): value for name, value in [*self.headers.raw_items()][::-1]}
        tokens = headers.get("connection", "").lower()
        self.will_close = "keep-alive" not in tokens if self.version == 10 else "close" in tokens
        self.chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self.chunk_left = None
        # Transfer-Encoding overrides Content-Length (RFC 9112, 6.3)
        self.length = None if self.chunked else self._body_length(headers.get("content-length"))
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

    def _body_length(self, given: str | None) -> int | None:
        if self._bodyless or self.status in (204, 304):
            return 0
        if given is not None and not (given.isascii() and given.isdigit()):
            raise http.client.HTTPException(f"this is no length: {given!r:.80}")
        return None if given is None else int(given)

    def _line(self) -> str:
        line: bytes = self.fp.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise http.client.LineTooLong("header line")
        if not line:
            raise http.client.RemoteDisconnected("Remote end closed connection without response")
        # latin-1 maps every byte, so this cannot fail
        return line.decode("latin-1")


def _status(line: str) -> tuple[str, int, str]:
    protocol, _, rest = line.strip().partition(" ")
    status, _, reason = rest.partition(" ")
    if not (protocol.startswith("HTTP/1.") and len(status) == 3 and status.isdecimal()):
        raise http.client.HTTPException(f"this is no reply of HTTP: {line!r:.80}")
    return protocol, int(status), reason


class _RequestWriter(http.client.HTTPConnection):
    """A connection that sends nothing and keeps the text of a request in `written`."""

    written = b""

    def send(self, data: Any) -> None:
        self.written += data


class Connection(http.client.HTTPConnection):
    """A connection that sends headers and body of a request together, in one packet if they fit."""

    response_class = Response
    sock: socket.socket | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._headers: Mapping[str, str] | None = None
        self._lines = b""
        self._limit_s = -1.0

    def exchange(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        """Send a request on an open connection and return the reply.

        Raises `ValueError` for bad characters in target or headers, `OSError` if the connection has
        ended, `HTTPException` if the reply is not HTTP.
        """
        if not _TARGET.fullmatch(target):
            raise ValueError(f"a request cannot ask for {target!r:.80}")
        if headers != self._headers:
            self._lines, self._headers = self._lines_of(headers), dict(headers)
        content = body or b""
        length = b"" if body is None else b"Content-Length: %d\r\n" % len(content)
        first = f"{method} {target} HTTP/1.1\r\n".encode("ascii")
        assert self.sock is not None
        self.sock.sendall(first + self._lines + length + b"\r\n" + content)
        response = Response(self.sock, method=method)
        response.begin()
        if response.will_close:
            self.close()  # the reply reads on
        return response

    def _lines_of(self, headers: Mapping[str, str]) -> bytes:
        """Return headers as the standard library writes them, including those that it adds."""
        writer = _RequestWriter(self.host, self.port)
        writer.default_port = self.default_port
        writer.request("GET", "/", headers=dict(headers))
        return writer.written.partition(b"\r\n")[2].removesuffix(b"\r\n")

    def wait_at_most(self, seconds: float) -> None:
        """Set the longest time to wait for data, in seconds."""
        if self._limit_s != seconds and self.sock is not None:
            self.sock.settimeout(seconds)
            self._limit_s = seconds

    @property
    def dropped(self) -> bool:
        """Whether the server has closed the connection, or has sent data without a request."""
        if self.sock is None:
            return True
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0))


class SecureConnection(Connection, http.client.HTTPSConnection):
    """The same over TLS."""
