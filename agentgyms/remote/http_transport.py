"""`HttpTransport`: HTTP over connections that stay open, in a third of `requests`' CPU time."""

from __future__ import annotations

import base64
import http.client
import os
import re
import select
import socket
import ssl
import weakref
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import SplitResult, unquote, urlsplit

from agentgyms.core.errors import ServerUnavailable
from agentgyms.core.http_clients import authorities, wrong_scheme
from agentgyms.remote.transport import Reply, WrongScheme

_LONGEST_LINE: Final = 65_536
_MOST_HEADERS: Final = 100
_TARGET: Final = re.compile("[!-~]+")
_FAILURES: Final = (OSError, ValueError, OverflowError, MemoryError, http.client.HTTPException)
"""Errors of sockets, host names and replies; a reply of absurd length raises MemoryError."""


class Response(http.client.HTTPResponse):
    """A reply whose headers are read line by line: the standard library's parser is slow."""

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
        try:
            response.begin()
        except BaseException:
            response.close()  # else the socket stays open as long as the error is kept
            raise
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

    def connect(self) -> None:
        """Connect; raise `WrongScheme` if the server speaks HTTP alone."""
        http.client.HTTPConnection.connect(self)
        assert self.sock is not None
        try:
            self.sock = authorities().wrap_socket(self.sock, server_hostname=self.host)
        except ssl.SSLCertVerificationError:
            raise
        except OSError as e:
            self.close()
            if mistake := wrong_scheme("https", self.host, self.port):
                raise WrongScheme(mistake) from e
            raise


class HttpTransport:
    """HTTP with connections that stay open; several threads may use it.

    Settings of the shell (proxies, .netrc) are ignored: a server of environments is reached
    directly. A server's certificate must be of an authority that the system or certifi knows.
    """

    def __init__(self) -> None:
        # Each process has its own: a forked one must not write to its parent's connections.
        # Appending to a list and taking from it need no lock.
        self._idle: _Idle = defaultdict(list)
        self._known: set[str] = set()  # hosts and ports that have answered
        weakref.finalize(self, _close_all, self._idle)

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: tuple[float, float],
    ) -> Reply:
        """Return the reply; see `Transport`. Redirections are not followed."""
        try:
            address = urlsplit(url)
            idle = self._idle[os.getpid(), address.scheme, address.netloc]
            connection = _usable(idle) or _opened(address, timeout_s[0])
        except WrongScheme:
            raise
        except _FAILURES as e:
            raise ServerUnavailable(_reason(e, "connection", timeout_s[0])) from e
        try:
            connection.wait_at_most(timeout_s[1])
            all_headers = {**_account(address), **headers}
            response = connection.exchange(method, _target(address), body, all_headers)
            content = response.read()
        except _FAILURES as e:
            connection.close()
            self._check_scheme(address, e)
            raise ServerUnavailable(_reason(e, "reply", timeout_s[1])) from e
        except BaseException:
            connection.close()
            raise
        self._known.add(address.netloc)
        if connection.sock is not None:
            idle.append(connection)
        return Reply(response.status, cast("Mapping[str, str]", response.headers), content)

    def _check_scheme(self, address: SplitResult, error: Exception) -> None:
        """Raise `WrongScheme` if a server that never answered http speaks TLS and hangs up."""
        new = address.scheme == "http" and address.netloc not in self._known
        if not new or not isinstance(error, ConnectionError):
            return
        if mistake := wrong_scheme("http", address.hostname or "", address.port or 80):
            raise WrongScheme(mistake) from error

    def clone(self) -> HttpTransport:
        """Return a transport with connections of its own."""
        return HttpTransport()

    def close(self) -> None:
        """Close the connections; the next request opens another one."""
        _close_all(self._idle)


_Idle = defaultdict[tuple[int, str, str], list[Connection]]


def _usable(idle: list[Connection]) -> Connection | None:
    while idle:
        try:
            connection = idle.pop()
        except IndexError:  # another thread was faster
            return None
        if not connection.dropped:
            return connection
        connection.close()
    return None


def _opened(address: SplitResult, timeout_s: float) -> Connection:
    if not address.hostname:
        raise ValueError("the address names no host")
    connection = (
        SecureConnection(address.hostname, address.port, timeout=timeout_s, context=authorities())
        if address.scheme == "https"
        else Connection(address.hostname, address.port, timeout=timeout_s)
    )
    connection.connect()
    return connection


def _target(address: SplitResult) -> str:
    path = address.path or "/"
    return f"{path}?{address.query}" if address.query else path


def _account(address: SplitResult) -> dict[str, str]:
    """Return the header for a name and password in the address; a proxy may need it."""
    if address.username is None:
        return {}
    account = f"{unquote(address.username)}:{unquote(address.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(account.encode()).decode()}"}


def _close_all(idle: _Idle) -> None:
    for (pid, _, _), connections in list(idle.items()):
        while connections and pid == os.getpid():
            connections.pop().close()


def _reason(error: Exception, awaited: str, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no {awaited} within {timeout_s:g} s"
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error) or type(error).__name__
