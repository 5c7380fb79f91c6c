"""An application on a socket: waitress in a thread, stopped without losing a reply."""

from __future__ import annotations

import logging
import socket
import threading
import time
from functools import partial
from typing import Any, Final, Self

import waitress
from flask import Flask
from waitress import wasyncore

from agentgyms.remote.protocol import error_codes
from agentgyms.serving import open_files
from agentgyms.serving.channel import IN_MEMORY, MOST_HEADER_BYTES, Channel, Terms
from agentgyms.serving.connection_limits import ConnectionLimiter, Threads
from agentgyms.serving.guesses import Guesses
from agentgyms.serving.served import EXTENSION, Served

log = logging.getLogger(__name__)

MOST_THREADS: Final = 64
REQUEST_S: Final = 60.0
_BODY_MARGIN: Final = 8  # bodies this many times too long still get an error of ours
_POLL_S: Final = 0.02


class Server:
    """One application, with a state as in `served`, behind one listening socket.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one; see `url`.
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
        connections = open_files.connection_limit(sessions.max_sessions, sessions.files_each)
        self._waitress: Any = waitress.create_server(
            app,
            map=self._channels,
            _dispatcher=Threads(threads or min(MOST_THREADS, sessions.max_sessions)),
            sockets=[listening],
            connection_limit=connections,
            cleanup_interval=1,
            channel_timeout=int(max(sessions.ttl_s, 120)),
            asyncore_use_poll=True,
            max_request_body_size=_BODY_MARGIN * self._service.max_body_bytes,
            max_request_header_size=MOST_HEADER_BYTES,
            inbuf_overflow=IN_MEMORY,
            outbuf_overflow=IN_MEMORY,
            channel_request_lookahead=1,  # so that a client that leaves meanwhile is noticed
            ident=None,
        )
        terms = Terms(self._service.access.has_token, self._service.max_body_bytes)
        self._waitress.channel_class = partial(Channel, terms=terms, guesses=Guesses())
        _install(ConnectionLimiter(self._channels, connections, request_s), self._waitress)
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

        Return whether all requests that had begun were finished within `grace_s`.
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
        channels = list(self._channels.values())
        unsent = any(getattr(channel, "total_outbufs_len", 0) for channel in channels)
        return unsent or bool(self._waitress.task_dispatcher.queue) or self._service.in_flight > 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _install(limiter: ConnectionLimiter, server: Any) -> None:
    """Let a limiter check the connections at each new one, and from time to time."""
    take, accept, close_silent = server.accept, server.handle_accept, server.maintenance

    def take_one() -> Any:
        try:
            return take()
        except OSError as e:
            if e.errno not in error_codes.NO_FILES:
                raise
            limiter.free_files()
            return None

    def accept_one() -> None:
        accept()
        limiter.make_room()

    def maintain(now: float) -> None:
        close_silent(now)
        limiter.write_late()
        limiter.close_stalled(now)
        limiter.free_memory(now)
        limiter.make_room()  # at the limit no connection is accepted that would see to it

    server.accept, server.handle_accept, server.maintenance = take_one, accept_one, maintain
