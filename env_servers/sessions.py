"""All sessions of a server: opened, found, expired; capacity and concurrency live only here."""

from __future__ import annotations

import logging
import math
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from agentgyms import error_codes
from agentgyms.core import TextEnv
from agentgyms.errors import ModelUnavailable
from env_servers import logs
from env_servers.errors import Refusal
from env_servers.factory import EnvFactory
from env_servers.gone import Gone
from env_servers.metrics import Metrics
from env_servers.session import Session

log = logging.getLogger(__name__)

_ID_BYTES: Final = 16
_LONGEST_RETRY_AFTER_S: Final = 5
_REMEMBERED_AT_LEAST: Final = 4096


class Sessions:
    """The sessions of one server.

    Args:
        factory: Makes the environments.
        metrics: Counts what happens.
        max_sessions: Most sessions at a time; a finished one gives way to a new one.
        ttl_s: A session unused for as long expires.
        clock: Seconds that never go back.
        busy_s: How long a request waits for another one of the same session.
    """

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
        self._by_request: dict[str, str] = {}  # "" while its session is being opened
        self._opened = threading.Condition(self._lock)
        self._gone = Gone(max(_REMEMBERED_AT_LEAST, 16 * max_sessions))
        metrics.watch("sessions", "Open sessions.", lambda: len(self._open))
        metrics.watch("sessions_limit", "Most open sessions at a time.", lambda: max_sessions)

    def __len__(self) -> int:
        """Return the number of open sessions."""
        return len(self._open)

    def create(self, kwargs: Mapping[str, Any], request_id: str) -> Session:
        """Open a session, or return the one that the same request opened before.

        Raises:
            Refusal: The server is full, or that session is gone.
        """
        return self._add(lambda: self._factory.make(kwargs), request_id)

    def fork(self, session_id: str, request_id: str) -> Session:
        """Open a session that stands where another one does."""
        with self.use(session_id) as parent:
            child = self._add(parent.env.fork, request_id)
            if child.episode == 0:  # else an earlier copy of this request has made it
                child.take_over(parent)
            return child

    @contextmanager
    def use(self, session_id: str) -> Iterator[Session]:
        """Give exclusive use of a session; one whose environment fails in it is closed.

        Raises:
            Refusal: There is no such session, it is gone, or it stays in use for too long.
        """
        session = self._find(session_id)
        if not session.lock.acquire(timeout=self.busy_s):
            raise Refusal("timeout", f"another request has used the session for {self.busy_s:g} s")
        try:
            if session.gone:
                raise self._why_gone(session_id)
            session.touched = self.clock()
            yield session
        except Exception as e:
            if not isinstance(e, Refusal) and _breaks(e):
                self._remove(session, "failed", "its environment failed")
            raise
        finally:
            session.touched = self.clock()
            session.lock.release()

    def waits(self, session_id: str) -> bool:
        """Return whether an environment waits for something, such as a model or an engine."""
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
        stop = threading.Event()
        weakref.finalize(self, stop.set)
        pause_s = min(max(self.ttl_s / 4, 0.05), 30.0)
        arguments = (weakref.ref(self), stop, pause_s)
        threading.Thread(target=_sweep, args=arguments, name="sweeper", daemon=True).start()

    def _find(self, session_id: str) -> Session:
        session = self._open.get(session_id)
        if session is None:
            raise self._why_gone(session_id)
        self._expire(session)
        return session

    def _why_gone(self, session_id: str) -> Refusal:
        return self._refused(session_id, self._gone.reason(session_id))

    def _refused(self, session_id: str, reason: str) -> Refusal:
        if not reason:
            return Refusal("unknown_session", f"there is no session {session_id!r:.60}")
        return Refusal("session_expired", f"the session is gone: {reason}")

    def _add(self, make: Callable[[], TextEnv], request_id: str) -> Session:
        earlier = self._reserve(request_id)
        if earlier is not None:
            return earlier
        try:
            env = make()
        except BaseException:
            with self._lock:
                self._opening -= 1
                self._by_request.pop(request_id, None)
                self._opened.notify_all()
            raise
        session_id = secrets.token_urlsafe(_ID_BYTES)
        session = Session(session_id, env, request_id, self._metrics, self.clock())
        with self._lock:
            self._opening -= 1
            self._open[session_id] = session
            if request_id:
                self._by_request[request_id] = session_id
                self._opened.notify_all()
        self._metrics.opened.inc()
        _tell("session opened", session)
        return session

    def _reserve(self, request_id: str) -> Session | None:
        """Keep a place free for a new session, or return the one this request opened before."""
        self.sweep()
        while True:
            with self._lock:
                earlier = self._opened_by(request_id)
                if earlier is not None:
                    return earlier
                if len(self._open) + self._opening < self.max_sessions:
                    self._opening += 1
                    if request_id:
                        self._by_request[request_id] = ""
                    return None
            if not self._evict():
                raise self._full()

    def _opened_by(self, request_id: str) -> Session | None:
        """Return the session that a request has opened, or is opening; None if it opens none yet.

        Raises:
            Refusal: The session is gone: a late copy of the request must not open another one.
        """
        if not self._opened.wait_for(lambda: self._by_request.get(request_id) != "", self.busy_s):
            raise Refusal("timeout", "the session of this request is being opened")
        reason = self._gone.reason_of_request(request_id)
        if reason:
            raise self._refused("", reason)
        session_id = self._by_request.get(request_id)
        return self._open[session_id] if session_id is not None else None

    def _evict(self) -> bool:
        """Close the finished session that was used longest ago, if there is one."""
        finished = [session for session in list(self._open.values()) if session.finished]
        reason = "it was finished and gave way to another one"
        oldest_first = sorted(finished, key=lambda session: session.touched)
        return any(self._discard(session, "evicted", reason) for session in oldest_first)

    def _full(self) -> Refusal:
        now = self.clock()
        idle = [now - session.touched for session in list(self._open.values())]
        free_in_s = self.ttl_s - max(idle, default=0.0)
        return Refusal(
            "server_full",
            f"the server holds {self.max_sessions} sessions, as many as it may",
            retry_after_s=min(max(math.ceil(free_in_s), 1), _LONGEST_RETRY_AFTER_S),
        )

    def _expire(self, session: Session) -> bool:
        """Close a session if it has expired and is not in use; return whether it was closed."""
        return self._idle(session) and self._discard(
            session, "expired", f"it was not used for {self.ttl_s:g} s", when=self._idle
        )

    def _idle(self, session: Session) -> bool:
        return self.clock() - session.touched > self.ttl_s

    def _discard(
        self,
        session: Session,
        event: str,
        reason: str,
        when: Callable[[Session], bool] = lambda session: session.finished,
    ) -> bool:
        """Close a session unless it is in use or no longer fit; return whether it was closed."""
        if not session.lock.acquire(blocking=False):
            return False
        try:
            if session.gone or not when(session):
                return False
            self._remove(session, event, reason)
            return True
        finally:
            session.lock.release()

    def _remove(self, session: Session, event: str, reason: str) -> None:
        """Forget a session whose lock is held, and close its environment."""
        with self._lock:
            session.gone = True
            self._open.pop(session.session_id, None)
            self._by_request.pop(session.request_id, None)
            self._gone.add(session.session_id, session.request_id, reason)
        self._metrics.closed.labels(event).inc()
        _tell("session closed", session, reason=event)
        try:
            session.env.close()
        except Exception:
            log.exception("closing an environment failed")


def _tell(event: str, session: Session, **more: str) -> None:
    if log.isEnabledFor(logging.DEBUG):
        log.debug(event, extra=logs.fields(session=logs.digest(session.session_id), **more))


def _breaks(error: Exception) -> bool:
    """Whether an exception leaves the environment in a state that nobody should go on from."""
    if isinstance(error, ModelUnavailable):
        return False  # the episode stands where it stood
    return error_codes.CODES[error_codes.code_of(error)].status >= 500


def _sweep(sessions: weakref.ref[Sessions], stop: threading.Event, pause_s: float) -> None:
    while not stop.wait(pause_s):
        alive = sessions()
        if alive is None:
            return
        alive.sweep()
        del alive
