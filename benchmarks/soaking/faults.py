"""Faults, one after another: each kind in turn, each on the next service that can have it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from soaking.services import TOKEN, Service

_LASTS_S: Final = 5.0
_STOPPED_S: Final = 3.0
_VANISHING: Final = 8
_SLOW_READERS: Final = 8
_PIPELINED: Final = 50


def workers_killed(service: Service) -> bool:
    """Kill one process below the server."""
    children = service.children()
    if not children:
        return False
    service.workers_killed += 1  # before: an episode may notice it at once
    with contextlib.suppress(ProcessLookupError):
        os.kill(children[-1], signal.SIGKILL)
    return True


def connections_break(service: Service) -> bool:
    """Let requests and replies be lost, cut, doubled and late for some seconds."""
    service.be_faulty(_LASTS_S, slow=False)
    return True


def connections_trickle(service: Service) -> bool:
    """Let requests and replies arrive byte by byte for some seconds."""
    service.be_faulty(_LASTS_S, slow=True)
    return True


def clients_vanish(service: Service) -> bool:
    """Open sessions, begin episodes, and never come back."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        opened = _post(service, "create", [{"kwargs": service.kwargs}] * _VANISHING)
        ids = [answer["session_id"] for answer in opened if "session_id" in answer]
        _post(service, "reset", [{"session_id": one, "seed": 1} for one in ids])
    return True


def readers_are_slow(service: Service) -> bool:
    """Send requests on several connections, and read no reply for some seconds."""
    asked = f"GET /v1/info HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        for _ in range(_SLOW_READERS):
            with contextlib.suppress(OSError):
                link = socket.create_connection(("127.0.0.1", service.port), 5)
                stack.enter_context(link)
                link.setblocking(False)
                link.send(asked * _PIPELINED)
        time.sleep(_LASTS_S)
    return True


def server_stops(service: Service) -> bool:
    """Stop the server's process for some seconds."""
    service.signal(signal.SIGSTOP)
    try:
        time.sleep(_STOPPED_S)
    finally:
        service.signal(signal.SIGCONT)
    return True


def server_killed(service: Service) -> bool:
    """Kill the server with all its sessions; another one takes its address."""
    if service.restarts:
        service.workers_killed += 1
        service.kill()
    return service.restarts


def server_drained(service: Service) -> bool:
    """Ask the server to end while clients play; another one takes its address."""
    if service.restarts:
        service.workers_killed += 1
        service.drain()
    return service.restarts


KINDS: Final[tuple[Callable[[Service], bool], ...]] = (
    connections_break,
    clients_vanish,
    server_killed,
    readers_are_slow,
    workers_killed,
    connections_trickle,
    server_drained,
    server_stops,
)


class Schedule(threading.Thread):
    """Brings a fault every so many seconds until it is told to stop.

    Args:
        services: The services that get the faults.
        every_s: Seconds between the beginnings of two faults.
        stop: The event that ends it.
        kinds: The functions that bring a fault to a service, and return whether they did.

    Attributes:
        done: Faults by kind.
        errors: What a fault itself failed with.
    """

    def __init__(
        self,
        services: Sequence[Any],
        every_s: float,
        stop: threading.Event,
        kinds: Sequence[Callable[[Any], bool]] = KINDS,
    ) -> None:
        super().__init__(name="faults", daemon=True)
        self._every_s, self._told_to_stop, self._kinds = every_s, stop, kinds
        self._next = {kind: itertools.cycle(services) for kind in kinds}
        self._number = len(services)
        self.done: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    @property
    def has_brought_all(self) -> bool:
        """Whether each kind has come at least once."""
        return len(self.done) == len(self._next)

    def run(self) -> None:
        """Bring faults in turn."""
        for kind in itertools.cycle(self._kinds):
            if self._told_to_stop.wait(self._every_s):
                return
            try:
                # Not every service can have every fault: the next one that can has it.
                if any(kind(next(self._next[kind])) for _ in range(self._number)):
                    self.done[kind.__name__.replace("_", " ")] += 1
            except Exception as error:
                self.errors[f"{kind.__name__}: {type(error).__name__}: {error}"] += 1


def _post(service: Service, operation: str, items: list[dict[str, object]]) -> list[dict[str, str]]:
    asked = urllib.request.Request(
        f"{service.address}/v1/batch/{operation}",
        json.dumps({"items": items}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
    )
    with urllib.request.urlopen(asked, timeout=60) as reply:
        answers: list[dict[str, str]] = json.load(reply)["results"]
        return answers
