"""`HttpTransport`: HTTP requests over connections that stay open, with little CPU time.

It uses `http.client`: `requests` takes three times the CPU time, more than the server's reply.
"""

from __future__ import annotations

import base64
import http.client
import os
import weakref
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import SplitResult, unquote, urlsplit

from agentgyms.core.errors import ServerUnavailable
from agentgyms.core.http_clients import authorities
from agentgyms.remote.http_connection import Connection, SecureConnection
from agentgyms.remote.transport import Reply

_FAILURES: Final = (OSError, ValueError, OverflowError, MemoryError, http.client.HTTPException)
"""Errors of sockets, host names and replies; a reply of absurd length raises MemoryError."""


class HttpTransport:
    """HTTP with connections that stay open; several threads may use it.

    Settings of the shell (proxies, .netrc) are ignored: a server of environments is reached
    directly. A server's certificate must be of an authority that the system or certifi knows.
    """

    def __init__(self) -> None:
        # Each process has its own: a forked one must not write to its parent's connections.
        # Appending to a list and taking from it need no lock.
        self._idle: _Idle = defaultdict(list)
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
        except _FAILURES as e:
            raise ServerUnavailable(_reason(e, "connection", timeout_s[0])) from e
        try:
            connection.wait_at_most(timeout_s[1])
            all_headers = {**_account(address), **headers}
            response = connection.exchange(method, _target(address), body, all_headers)
            content = response.read()
        except _FAILURES as e:
            connection.close()
            raise ServerUnavailable(_reason(e, "reply", timeout_s[1])) from e
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:
            idle.append(connection)
        return Reply(response.status, cast("Mapping[str, str]", response.headers), content)

    def clone(self) -> HttpTransport:
        """Return a transport with connections of its own."""
        return HttpTransport()

    def close(self) -> None:
        """Close the connections; the next request opens another one."""
        _close_all(self._idle)


_Idle = defaultdict[tuple[int, str, str], list[Connection]]


def _usable(idle: list[Connection]) -> Connection | None:
    """Return an open connection that is not in use; None if there is none."""
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
    """Return the reason why there was no reply."""
    if isinstance(error, TimeoutError):
        return f"no {awaited} within {timeout_s:g} s"
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error) or type(error).__name__
