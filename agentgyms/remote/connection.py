"""All addresses of one environment's servers: who gets the next session, and who takes over."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from agentgyms import protocol, wire
from agentgyms.errors import (
    BadOption,
    ServerFull,
    ServerUnavailable,
    SessionLost,
    WorkerLost,
)
from agentgyms.remote.endpoint import Endpoint, NoAnswer, UnreadableReply
from agentgyms.remote.http_transport import HttpTransport
from agentgyms.remote.lease import Lease, dismiss_all
from agentgyms.remote.patience import Patience
from agentgyms.remote.transport import Transport

LOST: Final = (SessionLost, ServerUnavailable, WorkerLost)
"""Errors after which an episode can go on in another session."""

T = TypeVar("T")
_NOT_HERE: Final = (ServerFull, ServerUnavailable, SessionLost)
_MANY: Final = 2**20

_rounds: defaultdict[tuple[str, ...], Iterator[int]] = defaultdict(
    lambda: itertools.count(secrets.randbelow(_MANY))
)
"""Whose turn it is among each list of addresses.

Each process begins anywhere, a forked one too: else the first server would get the first session of
every process.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rounds.clear)


class CannotRebuild(SessionLost):
    """The episode cannot be continued in another session: it would be another episode."""


class Connection:
    """The servers of one environment.

    Args:
        env_id: What they serve.
        url: One address, or several.
        token: Bearer token; None takes the variable `AGENTGYMS_TOKEN`.
        transport: Carries the requests; None makes one connection pool per address.
        patience: How long to wait.

    Raises:
        BadOption: There is no address, or the token cannot be sent.
    """

    def __init__(
        self,
        env_id: str,
        url: str | Sequence[str],
        token: str | None,
        transport: Transport | None,
        patience: Patience | None,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url or ())
        if not urls:
            raise BadOption("url is empty: expected a server's address, or a list of them")
        given = os.environ.get(protocol.TOKEN_VARIABLE, "") if token is None else token
        secret = protocol.check_token(given)
        self.env_id = env_id
        self.patience = patience or Patience()
        self.endpoints = [
            Endpoint(one, env_id, secret, transport or HttpTransport(), self.patience)
            for one in dict.fromkeys(urls)
        ]

    def clone(self) -> Connection:
        """Return the same servers for another thread."""
        twin = object.__new__(Connection)
        twin.env_id, twin.patience = self.env_id, self.patience
        twin.endpoints = [endpoint.clone() for endpoint in self.endpoints]
        return twin

    def moved(self, lease: Lease) -> Lease:
        """Return a session of another connection to the same servers as one of this."""
        endpoint = next(e for e in self.endpoints if e.url == lease.endpoint.url)
        return Lease(endpoint, lease.session_id, lease.episode, lease.description)

    def open(self, kwargs: dict[str, Any]) -> Lease:
        """Open a session on the server whose turn it is, or on the next one that can.

        Raises:
            BadOption: An argument cannot travel, or a server serves another environment.
            ServerFull: All servers that answer are full, for longer than patience lasts.
            ServerUnavailable: No server answers.
        """
        _check_arguments(kwargs)
        return self.when_there_is_room(lambda: self._open_somewhere(kwargs))

    def when_there_is_room(self, attempt: Callable[[], T]) -> T:
        """Return what `attempt` does as soon as no server is too full for it.

        Raises:
            ServerFull: Patience ends before.
        """
        give_up = time.monotonic() + self.patience.full_s
        while True:
            try:
                return attempt()
            except ServerFull as e:
                if time.monotonic() + e.retry_after_s > give_up:
                    raise
                time.sleep(e.retry_after_s)

    def _open_somewhere(self, kwargs: dict[str, Any]) -> Lease:
        full: list[ServerFull] = []
        dead: dict[Endpoint, ServerUnavailable] = {}
        for endpoint in self._in_turn():
            try:
                endpoint.greet()
                return Lease.open(endpoint, kwargs)
            except ServerFull as e:
                full.append(e)
            except ServerUnavailable as e:
                dead[endpoint] = e
        if full:
            raise min(full, key=lambda e: e.retry_after_s)
        raise _none_of([dead[endpoint] for endpoint in self.endpoints])

    def open_many(self, kwargs: dict[str, Any], number: int) -> list[Lease]:
        """Open sessions spread over the servers, with one call to each; errors as for `open`.

        What one server has no place for goes to the others.
        """
        _check_arguments(kwargs)
        leases: list[Lease] = []
        try:
            while len(leases) < number:
                before, missing = len(leases), number - len(leases)
                awake = [endpoint for endpoint in self._in_turn() if not endpoint.resting]
                for place, endpoint in enumerate(awake):
                    share = len(range(place, missing, len(awake)))
                    if share:
                        leases += _open_at(endpoint, kwargs, share)
                if len(leases) == before:
                    leases.append(self.open(kwargs))
        except BaseException:
            dismiss_all(leases)
            raise
        return leases

    def num_places(self) -> int:
        """Return how many sessions the servers hold together, as far as they have answered."""
        places = 0
        for endpoint in self.endpoints:
            if not (endpoint.num_places or endpoint.resting):
                with contextlib.suppress(ServerUnavailable):
                    endpoint.greet()
            places += endpoint.num_places
        return places

    def close(self) -> None:
        """Close the connections."""
        for endpoint in self.endpoints:
            endpoint.transport.close()

    def _in_turn(self) -> list[Endpoint]:
        """Return the endpoints, the one whose turn it is first and those that rest last."""
        first = next(_rounds[tuple(e.url for e in self.endpoints)]) % len(self.endpoints)
        rotated = self.endpoints[first:] + self.endpoints[:first]
        return sorted(rotated, key=lambda endpoint: endpoint.resting)


def _none_of(dead: list[ServerUnavailable]) -> ServerUnavailable:
    """Return one error for those of all servers, without saying the same twice."""
    silent = [error for error in dead if isinstance(error, NoAnswer)]
    if len(dead) == 1:
        return dead[0]
    if len(silent) == len(dead):
        return NoAnswer(" nor at ".join(error.tried for error in silent), silent[0].remedy)
    return ServerUnavailable("; ".join(map(str, dead)))


def _open_at(endpoint: Endpoint, kwargs: dict[str, Any], number: int) -> Iterator[Lease]:
    """Open as many of `number` sessions as one server has places for."""
    requests = [Lease.create_fields(kwargs) for _ in range(number)]
    try:
        endpoint.greet()
        results = endpoint.batch("create", requests)
    except ServerUnavailable:
        return
    failures: list[Exception] = []
    for result in results:
        if isinstance(result, Exception):
            failures += [] if isinstance(result, _NOT_HERE) else [result]
            continue
        try:
            yield Lease.take(endpoint, result)
        except UnreadableReply as e:
            failures.append(e)
    if failures:
        raise failures[0]


def _check_arguments(kwargs: dict[str, Any]) -> None:
    for name, value in kwargs.items():
        try:
            wire.dumps(value)
        except (TypeError, ValueError) as e:
            raise BadOption(f"{name}={value!r:.80} cannot be sent to a server: {e}") from None
