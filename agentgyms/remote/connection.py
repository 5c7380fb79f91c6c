"""All addresses of one environment's servers: who gets the next session, and who takes over."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from agentgyms import protocol, snapshots, wire
from agentgyms.errors import (
    BadOption,
    CallerError,
    ServerFull,
    ServerUnavailable,
    SessionLost,
    WorkerLost,
)
from agentgyms.remote.endpoint import Endpoint, Patience, UnreadableReply
from agentgyms.remote.lease import Lease
from agentgyms.remote.transport import HttpTransport, Transport

LOST: Final = (SessionLost, ServerUnavailable, WorkerLost)
"""Errors after which an episode can go on in another session."""

T = TypeVar("T")

_rounds: defaultdict[tuple[str, ...], Iterator[int]] = defaultdict(itertools.count)
"""How many sessions this process has asked each list of addresses for."""


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
        dead: list[ServerUnavailable] = []
        for endpoint in self._in_turn():
            try:
                endpoint.greet()
                return Lease.open(endpoint, kwargs)
            except ServerFull as e:
                full.append(e)
            except ServerUnavailable as e:
                dead.append(e)
        if full:
            raise min(full, key=lambda e: e.retry_after_s)
        raise dead[0] if len(dead) == 1 else ServerUnavailable("; ".join(map(str, dead)))

    def open_many(self, kwargs: dict[str, Any], number: int) -> list[Lease]:
        """Open sessions spread over the servers, with one call to each; errors as for `open`."""
        _check_arguments(kwargs)
        order = self._in_turn()
        leases: list[Lease] = []
        try:
            for place, endpoint in enumerate(order):
                share = len(range(place, number, len(order)))
                leases += _open_at(endpoint, kwargs, share)
            while len(leases) < number:
                leases.append(self.open(kwargs))
        except BaseException:
            for lease in leases:
                lease.dismiss()
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

    def rebuild(self, kwargs: dict[str, Any], episode: snapshots.Episode | None) -> Lease:
        """Open a session and bring it to where `episode` stands.

        Raises:
            CannotRebuild: Playing the episode again led elsewhere.
        """
        lease = self.open(kwargs)
        if episode is not None:
            try:
                _replay(lease, episode)
            except Exception:
                lease.dismiss()
                raise
        return lease

    def close(self) -> None:
        """Close the connections."""
        for endpoint in self.endpoints:
            endpoint.transport.close()

    def _in_turn(self) -> list[Endpoint]:
        """Return the endpoints, the one whose turn it is first and those that rest last."""
        first = next(_rounds[tuple(e.url for e in self.endpoints)]) % len(self.endpoints)
        rotated = self.endpoints[first:] + self.endpoints[:first]
        return sorted(rotated, key=lambda endpoint: endpoint.resting)


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
            failures += [] if isinstance(result, ServerFull) else [result]
            continue
        try:
            yield Lease.take(endpoint, result)
        except UnreadableReply as e:
            failures.append(e)
    if failures:
        raise failures[0]


def _replay(lease: Lease, episode: snapshots.Episode) -> None:
    """Play an episode in a new session, all turns in one batch, and compare the end."""
    expected = episode.last
    try:
        last = lease.reset(episode)
        turns = [
            {"session_id": lease.session_id, **lease.step_fields(action, turn)}
            for turn, action in enumerate(episode.actions, 1)
        ]
        for result in lease.endpoint.batch("step", turns):
            if isinstance(result, Exception):
                raise result
            step = lease.take_step(result)
            last = snapshots.Last(step.observation, step.info, step.terminated, step.truncated)
    except CallerError as e:
        raise CannotRebuild(
            f"the episode cannot be begun again at {lease.endpoint.url}: {e}"
        ) from e
    for name in ("state_key", "observation_key", "turn"):
        if last.info[name] != expected.info[name]:
            raise CannotRebuild(
                f"the session was lost, and playing its {len(episode.actions)} turns again at "
                f"{lease.endpoint.url} led to {name} {last.info[name]!r} where it was "
                f"{expected.info[name]!r}: do the servers have different versions or data?"
            )


def _check_arguments(kwargs: dict[str, Any]) -> None:
    for name, value in kwargs.items():
        try:
            wire.dumps(value)
        except (TypeError, ValueError) as e:
            raise BadOption(f"{name}={value!r:.80} cannot be sent to a server: {e}") from None
