"""All sessions of a server: opens, finds and expires them, within the capacity of the server."""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from agentgyms.core.deadlines import Abandoned, given_up_when
from agentgyms.core.env import TextEnv
from agentgyms.core.errors import ModelUnavailable
from agentgyms.remote.protocol import error_codes
from env_servers.observability import logs
from env_servers.observability.metrics import Metrics
from env_servers.sessions import requester, sweeper
from env_servers.sessions.closed_sessions import ClosedSessions
from env_servers.sessions.env_factory import EnvFactory
from env_servers.sessions.errors import Refusal
from env_servers.sessions.openings import LOOK_S, Opening, Openings, digest_of
from env_servers.sessions.session import Session

log = logging.getLogger(__name__)

_ID_BYTES: Final = 16
_FILES_PER_SESSION: Final = 6  # such as pipes to a process
_LONGEST_RETRY_AFTER_S: Final = 5
_REMEMBERED_AT_LEAST: Final = 4096
_UNCLAIMED_S: Final = 10.0


class Sessions:
    """The sessions of one server.

    At `max_sessions` a new one replaces a finished one; one unused for `ttl_s` expires. A request
    waits `busy_s` for another one of its session. `clock` is monotonic, in seconds. `files_each` is
    how many files an environment may need.
    """

    files_each = _FILES_PER_SESSION

    def __init__(
        self,
        factory: EnvFactory,
        metrics: Metrics,
        *,
        max_sessions: int,
        ttl_s: float,
        clock: Callable[[], float],
        busy_s: float = 30.0,
    ) -> None:
        self.max_sessions, self.ttl_s, self.clock = max_sessions, ttl_s, clock
        self._factory, self._metrics, self.busy_s = factory, metrics, busy_s
        self._lock = threading.Lock()
        self._open: dict[str, Session] = {}
        self._opening = 0
        self._openings = Openings(self._lock)
        self._closed = ClosedSessions(max(_REMEMBERED_AT_LEAST, 16 * max_sessions))
        metrics.watch("sessions", "Open sessions.", lambda: len(self._open))
        metrics.watch("sessions_limit", "Most open sessions at a time.", lambda: max_sessions)

    def __len__(self) -> int:
        return len(self._open)

    def create(self, kwargs: Mapping[str, Any], request_id: str) -> Session:
        """Open a session, or return the one that the same request opened before.

        Raises `Refusal` if the server is full, that session has ended, or the id is of another
        request.
        """
        asked = digest_of("create", kwargs)
        return self._add(lambda: self._factory.make(kwargs), request_id, asked)

    def fork(self, session_id: str, request_id: str) -> Session:
        """Open a session in the state of another one."""
        with self.use(session_id) as parent:
            child = self._add(parent.env.fork, request_id, digest_of("fork", session_id))
            if child.episode == 0:  # else an earlier copy of this request has made it
                child.take_over(parent)
            return child

    @contextmanager
    def use(self, session_id: str) -> Iterator[Session]:
        """Yield a session under its lock; a session whose environment fails is closed.

        Raises `Refusal` if there is no such session, it has ended, or stays in use for too long.
        """
        session = self._open.get(session_id)
        if session is None:
            raise self._unknown(session_id)
        self._expire(session)
        if not session.lock.acquire(blocking=False):
            self._wait_for(session)
        try:
            if session.is_closed:
                raise self._unknown(session_id)
            session.touched, session.unclaimed = self.clock(), False
            yield session
        except Exception as e:
            if isinstance(e, Abandoned):
                self._remove(session, "abandoned", "its client left while an episode was begun")
            elif not isinstance(e, Refusal) and _is_unusable_after(e, session):
                self._remove(session, "failed", "its environment failed")
            raise
        finally:
            session.touched = self.clock()
            session.lock.release()

    def waits(self, session_id: str) -> bool:
        """Return whether the steps of a session wait for a model or an engine."""
        session = self._open.get(session_id)
        return session is not None and session.env.blocking

    def close(self, session_id: str) -> None:
        """Close a session."""
        with self.use(session_id) as session:
            self._remove(session, "closed", "it was closed")

    def close_all(self) -> None:
        """Close all sessions but those in use: the server stops, and its engines with it."""
        for session in list(self._open.values()):
            self._discard(session, "closed", "the server stopped", when=lambda _: True)

    def sweep(self) -> int:
        """Close the sessions that have expired and return their number."""
        return sum(self._expire(session) for session in list(self._open.values()))

    def sweep_forever(self) -> None:
        """Start a thread that sweeps for as long as this object lives."""
        sweeper.start(self, min(max(self.ttl_s / 4, 0.05), _UNCLAIMED_S / 2))

    def unclaim(self, session_ids: Iterable[str]) -> None:
        """Expire soon the sessions whose client left before it got their id, unless a copy came."""
        with self._lock:
            for session in filter(None, map(self._open.get, session_ids)):
                session.unclaimed = not self._openings.num_copies(session.request_id)

    def _wait_for(self, session: Session) -> None:
        """Take a used session's lock; `Refusal` if it takes too long or the client leaves."""
        deadline = time.monotonic() + self.busy_s
        with session.awaited():
            while not session.lock.acquire(timeout=min(self.busy_s, LOOK_S)):
                requester.check()
                if time.monotonic() >= deadline:
                    busy = f"another request has used the session for {self.busy_s:g} s"
                    raise Refusal("timeout", busy)

    def _unknown(self, session_id: str) -> Refusal:
        return self._refusal(session_id, self._closed.reason(session_id))

    def _refusal(self, session_id: str, reason: str) -> Refusal:
        if not reason:
            return Refusal("unknown_session", f"there is no session {session_id!r:.60}")
        return Refusal("session_expired", f"the session is gone: {reason}")

    def _add(self, make: Callable[[], TextEnv], request_id: str, asked: str) -> Session:
        opening = self._reserve(request_id, asked)
        if isinstance(opening, Session):
            return opening
        try:
            with given_up_when(opening.in_vain):
                env = make()
        except BaseException:
            with self._lock:
                self._opening -= 1
                self._openings.end(request_id, opening, "")
            raise
        session_id = secrets.token_urlsafe(_ID_BYTES)
        session = Session(session_id, env, request_id, self._metrics, self.clock())
        with self._lock:
            self._opening -= 1
            self._open[session_id] = session
            self._openings.end(request_id, opening, session_id)
        self._metrics.opened.inc()
        _log_event("session opened", session)
        return session

    def _reserve(self, request_id: str, asked: str) -> Opening | Session:
        """Keep a place free for a new session, or return the one this request opened before."""
        self.sweep()
        while True:
            with self._lock:
                earlier = self._opened_by(request_id, asked)
                if earlier is not None:
                    return earlier
                if len(self._open) + self._opening < self.max_sessions:
                    self._opening += 1
                    return self._openings.begin(request_id, asked)
            if not self._evict():
                now = self.clock()
                idle = [now - session.touched for session in list(self._open.values())]
                free_in_s = self.ttl_s - max(idle, default=0.0)
                raise Refusal(
                    "server_full",
                    f"the server holds {self.max_sessions} sessions, as many as it may",
                    retry_after_s=min(max(math.ceil(free_in_s), 1), _LONGEST_RETRY_AFTER_S),
                )

    def _opened_by(self, request_id: str, asked: str) -> Session | None:
        """Return the session that a request has opened, or None; `Refusal` if that has ended."""
        session_id = self._openings.earlier(request_id, asked, self.busy_s)
        reason = self._closed.reason_of_request(request_id)
        if reason:
            raise self._refusal("", reason)
        session = self._open[session_id] if session_id is not None else None
        if session is not None:
            session.touched, session.unclaimed = self.clock(), False
        return session

    def _evict(self) -> bool:
        """Close the finished session that was used longest ago, if there is one."""
        finished = [session for session in list(self._open.values()) if session.finished]
        reason = "it was finished and gave way to another one"
        oldest_first = sorted(finished, key=lambda session: session.touched)
        return any(self._discard(session, "evicted", reason) for session in oldest_first)

    def _expire(self, session: Session) -> bool:
        return self._idle(session) and self._discard(
            session, "expired", f"it was not used for {self.ttl_s:g} s", when=self._idle
        )

    def _idle(self, session: Session) -> bool:
        limit_s = min(self.ttl_s, _UNCLAIMED_S) if session.unclaimed else self.ttl_s
        return self.clock() - session.touched > limit_s

    def _discard(
        self,
        session: Session,
        event: str,
        reason: str,
        when: Callable[[Session], bool] = lambda session: session.finished,
    ) -> bool:
        """Close a session unless it is in use or `when` is false; return whether it was closed."""
        if not session.lock.acquire(blocking=False):
            return False
        try:
            if session.is_closed or not when(session):
                return False
            self._remove(session, event, reason)
            return True
        finally:
            session.lock.release()

    def _remove(self, session: Session, event: str, reason: str) -> None:
        """Remove a session, whose lock the caller holds, and close its environment."""
        with self._lock:
            session.is_closed = True
            self._open.pop(session.session_id, None)
            self._openings.forget(session.request_id)
            # A client that was not told of its session may ask for another one.
            request_id = "" if session.unclaimed else session.request_id
            self._closed.add(session.session_id, request_id, reason)
        self._metrics.closed.labels(event).inc()
        _log_event("session closed", session, reason=event)
        try:
            session.env.close()
        except Exception:
            log.exception("closing an environment failed")


def _log_event(event: str, session: Session, **more: str) -> None:
    if log.isEnabledFor(logging.DEBUG):
        log.debug(event, extra=logs.fields(session=logs.digest(session.session_id), **more))


def _is_unusable_after(error: Exception, session: Session) -> bool:
    """Return whether an environment that raised this exception must not be used any more."""
    if isinstance(error, ModelUnavailable):
        return False  # the episode is unchanged
    code = error_codes.code_of(error)
    if code == "overloaded" and session.turn is None:
        return False  # no episode has begun, and the same reset may succeed later
    return error_codes.CODES[code].status >= 500
