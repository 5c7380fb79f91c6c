"""Transports send one request to a server and return its reply: over HTTP, Ray or in this process.

They do not know the protocol. A transport raises `ServerUnavailable` with the reason alone if
there was no reply; `agentgyms.remote.endpoint` decides whether to try again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from agentgyms.core.errors import ServerUnavailable


class Reply(NamedTuple):
    """The reply to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WrongScheme(ServerUnavailable):
    """The server speaks http where the address says https, or the other way round."""


class Request(NamedTuple):
    """A request to an application that is called without a socket."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None


def call_app(app: Any, request: Request) -> Reply:
    """Return the reply of a Flask application in this process."""
    method, target, headers, body = request
    client = app.test_client(use_cookies=False)
    response = client.open(target, method=method, headers=dict(headers), data=body)
    return Reply(response.status_code, dict(response.headers), response.get_data())


class Transport(Protocol):
    """The way in which `RemoteEnv` sends its requests."""

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: tuple[float, float],
    ) -> Reply:
        """Return the reply to one request.

        Args:
            method: The HTTP method.
            url: The whole address.
            headers: The request's headers.
            body: The request's body, or None for none.
            timeout_s: Longest time until connected, and until the reply.

        Raises:
            ServerUnavailable: There was no reply; the text is the reason.
        """

    def clone(self) -> Transport:
        """Return a transport that another thread may use."""

    def close(self) -> None:
        """Close connections."""


class InProcessTransport:
    """Calls applications in this process, without a socket: for tests, your own among them.

    Args:
        apps: Flask applications by an address of your choice, such as `{"http://one": app}`.
            Requests to all other addresses are refused.
    """

    def __init__(self, apps: Mapping[str, Any]) -> None:
        self._apps = apps

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: tuple[float, float],
    ) -> Reply:
        """Return the application's reply; see `Transport`."""
        scheme, _, rest = url.partition("://")
        host, _, path = rest.partition("/")
        app = self._apps.get(f"{scheme}://{host}")
        if app is None:
            raise ServerUnavailable("connection refused")
        replies: list[Reply] = []

        def answer() -> None:
            replies.append(call_app(app, Request(method, f"/{path}", headers, body)))

        # The application runs in its own thread: a client that is garbage-collected while the
        # application holds a lock must not wait for that lock in the same thread.
        thread = threading.Thread(target=answer, name="in-process server", daemon=True)
        thread.start()
        thread.join(timeout_s[1])
        if not replies:
            raise ServerUnavailable(f"no reply within {timeout_s[1]:g} s")
        return replies[0]

    def clone(self) -> InProcessTransport:
        """Return the transport itself, which keeps nothing between calls."""
        return self

    def close(self) -> None:
        """Do nothing."""
