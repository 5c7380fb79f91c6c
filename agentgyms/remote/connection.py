"""The servers of one environment: which one gets the next session, and which one replaces it."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from agentgyms.core import serialization
from agentgyms.core.errors import BadOption, ServerFull, ServerUnavailable, SessionLost, WorkerLost
from agentgyms.remote import ray_actors
from agentgyms.remote.endpoint import Endpoint, NoAnswer, UnreadableReply
from agentgyms.remote.http_transport import HttpTransport
from agentgyms.remote.lease import Lease, dismiss_all
from agentgyms.remote.patience import Patience
from agentgyms.remote.protocol import framing
from agentgyms.remote.transport import Transport

LOST: Final = (SessionLost, ServerUnavailable, WorkerLost)
"""Errors after which an episode can be continued in another session."""

T = TypeVar("T")
_NOT_HERE: Final = (ServerFull, ServerUnavailable, SessionLost)
_MANY: Final = 2**20

_counters: defaultdict[tuple[str, ...], Iterator[int]] = defaultdict(
    lambda: itertools.count(secrets.randbelow(_MANY))
)
"""Counters for the round-robin choice of a server, by list of addresses.

Each process, a forked one too, starts at a random number: else the first server would get the first
session of every process.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_counters.clear)


class CannotRebuild(SessionLost):
    """The episode cannot be continued in another session, because it would not be the same."""


class Connection:
    """The servers of one environment, at one address or several.

    `token` None takes the variable `AGENTGYMS_TOKEN`. Without a `transport` each address gets a
    pool of connections. Raises `BadOption` without an address, for a token that cannot be sent, and
    for a wrong `patience`.
    """

    def __init__(
        self,
        env_id: str,
        url: str | Sequence[str],
        token: str | None,
        transport: Transport | None,
        patience: Patience | Mapping[str, float] | None,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url or ())
        if not urls:
            raise BadOption("url is empty: expected a server's address, or a list of them")
        self.arguments: dict[str, Any] = {
            "env_id": env_id,
            "url": urls,
            "token": token,
            "transport": transport,
            "patience": patience,
        }
        given = os.environ.get(framing.TOKEN_VARIABLE, "") if token is None else token
        secret = framing.check_token(given)
        self.env_id = env_id
        self.patience = Patience.of(patience)
        self.endpoints = [
            Endpoint(address, env_id, secret, carrier, self.patience)
            for one in dict.fromkeys(urls)
            for address, carrier in _carriers(one, env_id, transport).items()
        ]

    def clone(self) -> Connection:
        """Return a connection to the same servers for another thread."""
        twin = copy.copy(self)
        twin.endpoints = [endpoint.clone() for endpoint in self.endpoints]
        return twin

    def moved(self, lease: Lease) -> Lease:
        """Return a session of another connection to the same servers as a session of this one."""
        endpoint = next(e for e in self.endpoints if e.url == lease.endpoint.url)
        return Lease(endpoint, lease.session_id, lease.episode, lease.description)

    def open(self, kwargs: dict[str, Any]) -> Lease:
        """Open a session on the next server in round-robin order that has a place.

        Raises `BadOption` if an argument cannot travel or a server has another environment,
        `ServerFull` after `patience.full_s` seconds, `ServerUnavailable` if no server replies.
        """
        _check_arguments(kwargs)
        return self.when_there_is_room(lambda: self._open_somewhere(kwargs))

    def when_there_is_room(self, attempt: Callable[[], T]) -> T:
        """Call `attempt` until it does not raise `ServerFull`, for at most `patience.full_s`."""
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
        for endpoint in self._in_round_robin_order():
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
        """Open sessions spread over the servers, with one call to each; errors are those of `open`.

        If one server has too few places, the others get the rest.
        """
        _check_arguments(kwargs)
        leases: list[Lease] = []
        try:
            while len(leases) < number:
                before, missing = len(leases), number - len(leases)
                awake = [
                    endpoint for endpoint in self._in_round_robin_order() if not endpoint.resting
                ]
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
        """Return how many sessions the servers that have replied can hold together."""
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

    def _in_round_robin_order(self) -> list[Endpoint]:
        """Return the endpoints in round-robin order; those that are `resting` come last."""
        first = next(_counters[tuple(e.url for e in self.endpoints)]) % len(self.endpoints)
        rotated = self.endpoints[first:] + self.endpoints[:first]
        return sorted(rotated, key=lambda endpoint: endpoint.resting)


def _carriers(url: str, env_id: str, transport: Transport | None) -> Mapping[str, Transport]:
    """Return the servers that one address stands for, and what carries requests to each."""
    if transport is None and isinstance(url, str):
        scheme, separator, rest = url.strip().partition("://")
        if f"{scheme.lower()}{separator}" == ray_actors.SCHEME:
            return ray_actors.transports(f"{ray_actors.SCHEME}{rest}", env_id)
    return {url: transport or HttpTransport()}


def _none_of(dead: list[ServerUnavailable]) -> ServerUnavailable:
    """Return one error for the errors of all servers, without repetition."""
    silent = [error for error in dead if isinstance(error, NoAnswer)]
    if len(dead) == 1:
        return dead[0]
    if len(silent) == len(dead):
        return NoAnswer(" nor at ".join(error.tried for error in silent), silent[0].remedy)
    return ServerUnavailable("; ".join(map(str, dead)))


def _open_at(endpoint: Endpoint, kwargs: dict[str, Any], number: int) -> Iterator[Lease]:
    """Open `number` sessions on one server, or as many as it has places for."""
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
            serialization.dumps(value)
        except (TypeError, ValueError) as e:
            raise BadOption(f"{name}={value!r:.80} cannot be sent to a server: {e}") from None
