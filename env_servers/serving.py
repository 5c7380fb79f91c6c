"""An application on a socket: waitress in a thread, stopped without losing a reply."""

from __future__ import annotations

import ipaddress
import logging
import resource
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Protocol, Self

import waitress
from flask import Flask
from waitress import wasyncore

from env_servers.connections import Doorkeeper, Threads
from env_servers.one_packet import Channel
from env_servers.service import EXTENSION

log = logging.getLogger(__name__)

MOST_THREADS: Final = 64
REQUEST_S: Final = 60.0
_BODY_MARGIN: Final = 8  # bodies this many times too long still get an error of ours
_POLL_S: Final = 0.02


class Clients(Protocol):
    """Who may be connected at a time.

    Attributes:
        max_sessions: How many clients.
        ttl_s: How long a client may be silent, in seconds.
    """

    max_sessions: int
    ttl_s: float

    def close_all(self) -> None:
        """Give back what clients hold."""


class Served(Protocol):
    """What an application keeps at `app.extensions[EXTENSION]` to be served.

    Attributes:
        draining: Set when the server is about to stop: requests are to be refused.
        in_flight: Requests being answered now.
        waiting: Set to what tells how many requests wait for a thread.
        max_body_bytes: Longest request body.
    """

    draining: bool
    in_flight: int
    waiting: Callable[[], int]
    max_body_bytes: int

    @property
    def sessions(self) -> Clients:
        """The application's clients."""


class Server:
    """One application behind one listening socket.

    Args:
        app: Made by `create_app` or `create_retriever_app`.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one, which `url` tells.
        threads: Requests handled at a time, probes aside; None takes one per session, at most 64.
        request_s: Seconds for a client to send a request, or to take some of its reply.
    """

    def __init__(
        self,
        app: Flask,
        host: str = "127.0.0.1",
        port: int = 0,
        threads: int | None = None,
        request_s: float = REQUEST_S,
    ) -> None:
        """Raise `OSError` if the address cannot be listened on."""
        self._service: Served = app.extensions[EXTENSION]
        sessions = self._service.sessions
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=1024)
        self._host, self._port = listening.getsockname()[:2]
        self._channels: dict[int, Any] = {}
        connections = _connection_limit(sessions.max_sessions)
        self._waitress: Any = waitress.create_server(
            app,
            map=self._channels,
            _dispatcher=Threads(threads or min(MOST_THREADS, sessions.max_sessions)),
            sockets=[listening],
            # Every client keeps a connection open, for as long as it may think between two turns.
            connection_limit=connections,
            cleanup_interval=max(int(request_s / 10), 1),
            channel_timeout=int(max(sessions.ttl_s, 120)),
            asyncore_use_poll=True,
            max_request_body_size=_BODY_MARGIN * self._service.max_body_bytes,
            ident=None,
        )
        self._waitress.channel_class = Channel
        _employ(Doorkeeper(self._channels, connections, request_s), self._waitress)
        waiting = self._waitress.task_dispatcher.queue
        self._service.waiting = lambda: len(waiting)
        self._thread = threading.Thread(target=self._waitress.run, name="waitress", daemon=True)

    @property
    def url(self) -> str:
        """The address of this server."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def drain(self, grace_s: float = 10.0) -> bool:
        """Refuse new requests, finish those begun, stop, and close the environments.

        Returns:
            Whether all requests that had begun were finished within `grace_s`.
        """
        self._service.draining = True
        deadline = time.monotonic() + grace_s
        while self._busy() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        finished = not self._busy()
        if not finished:
            log.warning("%d requests were cut off", self._service.in_flight)
        self.stop()
        self._service.sessions.close_all()
        return finished

    def stop(self) -> None:
        """Stop at once."""
        dispatcher, trigger = self._waitress.task_dispatcher, self._waitress.trigger
        if self._thread.is_alive():
            # Only the loop's own thread may close its sockets.
            trigger.pull_trigger(self._end_loop)
            self._thread.join(timeout=5)
        dispatcher.shutdown(timeout=0.5)
        if not dispatcher.threads:  # one that still works may pull the trigger yet
            trigger.close()

    def _end_loop(self) -> None:
        for channel in list(self._channels.values()):
            if channel is self._waitress:  # whose own close would close the trigger too
                wasyncore.dispatcher.close(channel)
            elif channel is not self._waitress.trigger:  # which is being pulled
                channel.close()
        self._channels.clear()

    def _busy(self) -> bool:
        """Whether a request waits, is being answered, or its reply is not sent yet."""
        channels = list(self._channels.values())
        unsent = any(getattr(channel, "total_outbufs_len", 0) for channel in channels)
        return unsent or bool(self._waitress.task_dispatcher.queue) or self._service.in_flight > 0

    def __enter__(self) -> Self:
        """Begin to answer."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop at once."""
        self.stop()


def _connection_limit(max_sessions: int) -> int:
    """Return how many connections may be open, as far as this process may open files."""
    wanted = 4 * max_sessions + 100
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(16, min(wanted, files - 64))


def _employ(doorkeeper: Doorkeeper, server: Any) -> None:
    """Let a doorkeeper look at each new connection, and at all of them from time to time."""
    accept, close_silent = server.handle_accept, server.maintenance

    def accept_one() -> None:
        accept()
        doorkeeper.make_room()

    def maintain(now: float) -> None:
        close_silent(now)
        doorkeeper.close_stalled(now)

    server.handle_accept, server.maintenance = accept_one, maintain


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
