"""Recovery of an episode whose session is lost: it is played again in another session."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

from agentgyms.core.errors import CallerError
from agentgyms.core.snapshots import Episode, Last
from agentgyms.remote.batches import BatchItem, call_in_batches
from agentgyms.remote.connection import LOST, CannotRebuild, Connection
from agentgyms.remote.endpoint import UnreadableReply
from agentgyms.remote.lease import Lease, dismiss_all
from agentgyms.remote.patience import Patience


class Grace:
    """The time, from the first call of `is_over` on, in which a session must be recovered."""

    def __init__(self, patience: Patience) -> None:
        self._patience, self._since, self._attempt = patience, 0.0, 0

    def is_over(self) -> bool:
        """Return whether the time is over; if not, wait before the next attempt."""
        now = time.monotonic()
        if not self._attempt:
            self._since = now
        elif now >= self._since + self._patience.lost_s:
            return True
        else:
            time.sleep(self._patience.pause(self._attempt - 1))
        self._attempt += 1
        return self._patience.lost_s <= 0

    def explain(self, error: Exception) -> Exception:
        """Return an error of the same class that says what was tried, and what to do."""
        seconds = time.monotonic() - self._since
        kind = next(kind for kind in LOST if isinstance(error, kind))
        return kind(
            f"{error}. The episode's session was lost, and no server took it over within "
            f"{seconds:.1f} s (patience.lost_s is {self._patience.lost_s:g}). The episode is kept "
            "here: the same call goes on with it once a server answers"
        )


def can_go_on(error: object) -> bool:
    """Return whether an episode can go on in another session after an error."""
    final = (CannotRebuild, UnreadableReply)  # another session would answer the same
    return isinstance(error, LOST) and not isinstance(error, final)


def rebuild(connection: Connection, kwargs: dict[str, Any], episode: Episode | None) -> Lease:
    """Open a session and play `episode` in it; `CannotRebuild` if this leads to another state."""
    lease = connection.open(kwargs)
    if episode is not None:
        try:
            _replay(lease, episode)
        except Exception:
            lease.dismiss()
            raise
    return lease


def _replay(lease: Lease, episode: Episode) -> None:
    """Play an episode in a new session, all turns in one batch, and compare the last state."""
    try:
        last = lease.reset(episode)
        turns = [
            {"session_id": lease.session_id, **lease.step_fields(action, turn)}
            for turn, action in enumerate(episode.actions, 1)
        ]
        for turn, result in enumerate(lease.endpoint.batch("step", turns), 1):
            if isinstance(result, Exception):
                raise result
            last = lease.take_step(result, turn).state
    except CallerError as e:
        raise _not_repeatable(lease, e) from e
    _compare(lease, episode, last)


def rebuild_all(
    pool: Executor,
    connection: Connection,
    kwargs: dict[str, Any],
    episodes: Mapping[int, Episode | None],
) -> dict[int, Lease | Exception]:
    """Rebuild sessions, with one call per server and turn; return each, or its error, by key."""
    try:
        opened = connection.open_many(kwargs, len(episodes))
    except Exception as e:
        return dict.fromkeys(episodes, e)
    leases = dict(zip(episodes, opened, strict=True))
    # members without an episode need a session alone
    begun = {i: episode for i, episode in episodes.items() if episode is not None}
    failures = _replay_all(pool, {i: leases[i] for i in begun}, begun)
    dismiss_all([leases[i] for i in failures])
    return leases | failures


def _replay_all(
    pool: Executor, leases: Mapping[int, Lease], episodes: Mapping[int, Episode]
) -> dict[int, Exception]:
    failures: dict[int, Exception] = {}
    last: dict[int, Last] = {}

    def keep(results: Mapping[int, Any]) -> None:
        for i, result in results.items():
            if isinstance(result, CallerError):
                failures[i] = _not_repeatable(leases[i], result)
            elif isinstance(result, Exception):
                failures[i] = result
            else:
                last[i] = result

    resets = {
        i: BatchItem(partial(Lease.reset_fields, episode=episode), Lease.take_state)
        for i, episode in episodes.items()
    }
    keep(call_in_batches(pool, "reset", leases, resets))
    for turn in range(1, 1 + max((len(e.actions) for e in episodes.values()), default=0)):
        steps = {
            i: BatchItem(
                partial(Lease.step_fields, action=episode.actions[turn - 1], turn=turn),
                partial(_read_state, turn=turn),
            )
            for i, episode in episodes.items()
            if i not in failures and turn <= len(episode.actions)
        }
        keep(call_in_batches(pool, "step", leases, steps))
    for i, episode in episodes.items():
        if i not in failures:
            try:
                _compare(leases[i], episode, last[i])
            except CannotRebuild as e:
                failures[i] = e
    return failures


def _read_state(lease: Lease, value: Any, turn: int) -> Last:
    return lease.take_step(value, turn).state


def _not_repeatable(lease: Lease, error: CallerError) -> CannotRebuild:
    return CannotRebuild(f"the episode cannot be begun again at {lease.endpoint.url}: {error}")


def _compare(lease: Lease, episode: Episode, reached: Last) -> None:
    expected = episode.last
    for name in ("state_key", "observation_key", "turn"):
        if reached.info[name] != expected.info[name]:
            raise CannotRebuild(
                f"the session was lost, and playing its {len(episode.actions)} turns again at "
                f"{lease.endpoint.url} led to {name} {reached.info[name]!r} where it was "
                f"{expected.info[name]!r}: do the servers have different versions or data?"
            )
