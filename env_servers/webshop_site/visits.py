"""Visits to the shop: opens, finds and expires them; a visit keeps its earlier pages."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from agentgyms.envs.webshop.rules.session import Result, ShopSession

MAX_VISITS: Final = 1000
TTL_S: Final = 3600.0

_ID_BYTES: Final = 16
_TURNS_KEPT: Final = 200
_REMEMBERED_AT_LEAST: Final = 4096
_LONGEST_RETRY_AFTER_S: Final = 60
_READING_S: Final = 300.0  # a visit on its first page is kept for as long


class NoVisit(Exception):
    """The visit, or this page of it, never existed (`status` 404) or has ended (410)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Full(Exception):
    """The maximum number of visits is open; the next attempt makes sense after `retry_after_s`."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"the shop is full, ask again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class PurchaseMade(Exception):
    """Something was bought, so the visit takes no more actions."""


class Turn(NamedTuple):
    """A page: the session of `ShopSession.save`, and the result of the action before, if any."""

    saved: dict[str, Any]
    result: Result | None


class Visit:
    """The visit of one person or one environment.

    Its session is at the page requested last. A `person` may see how the purchase scored; an agent
    may not. `touched` is when it was last used, in seconds.
    """

    def __init__(self, visit_id: str, session: ShopSession, person: bool, now: float) -> None:
        self.visit_id, self.session, self.person, self.touched = visit_id, session, person, now
        self.is_closed = False
        self.lock = threading.Lock()
        self._turns: dict[int, Turn] = {0: Turn(session.save(), None)}
        self._over = session.done

    @property
    def latest(self) -> int:
        """The number of the last page."""
        return max(self._turns)

    @property
    def begun(self) -> bool:
        """Whether it has an action, or belongs to an environment."""
        return not self.person or self.latest > 0

    @property
    def over(self) -> bool:
        """Whether something was bought."""
        return self._over

    def open(self, turn: int) -> Turn:
        """Bring the session to a page and return it; raise `NoVisit` if there is no such page."""
        found = self._turns.get(turn)
        if found is None:
            dropped = 0 <= turn < self.latest
            reason = "The page is too long ago." if dropped else "The visit has no such page."
            raise NoVisit(410 if dropped else 404, reason)
        self.session.load(found.saved)
        return found

    def act(self, turn: int, action: str) -> int:
        """Act on a page, dropping those after it; return the number of the next page.

        Raises `NoVisit` if the visit has no such page, `PurchaseMade` if it is over.
        """
        self.open(turn)
        if self._over:
            raise PurchaseMade
        result = self.session.act(action)
        for later in [number for number in self._turns if number > turn]:
            del self._turns[later]
        self._turns[turn + 1] = Turn(self.session.save(), result)
        self._over = self.session.done
        if len(self._turns) > _TURNS_KEPT:
            del self._turns[next(iter(self._turns))]
        return turn + 1

    def put(self, saved: Any) -> int:
        """Load a saved session as a new page and return its number.

        A damaged session, or one of another shop, raises `TypeError`, `ValueError` or
        `LookupError`.
        """
        self.session.load(saved)
        turn = self.latest + 1
        self._turns = {turn: Turn(self.session.save(), None)}
        self._over = self.session.done
        return turn


class Visits:
    """The visits of one site, at most `max_sessions`.

    A new one replaces one that is over, or an unused one on its first page. One expires after
    `ttl_s` without a request. The clock is monotonic, in seconds.
    """

    files_each = 0

    def __init__(self, *, max_sessions: int, ttl_s: float, clock: Callable[[], float]) -> None:
        self.max_sessions, self.ttl_s, self._clock = max_sessions, ttl_s, clock
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Visit] = OrderedDict()  # least recently used first
        self._ended: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, session: ShopSession, *, person: bool) -> Visit:
        """Return a new visit; raise `Full` if the maximum is open, and none can be replaced."""
        with self._lock:
            now = self._clock()
            self._expire(now)
            if len(self._open) >= self.max_sessions and not self._evict(now):
                oldest = next(iter(self._open.values()))
                wait = int(self.ttl_s - (now - oldest.touched)) + 1
                raise Full(min(max(wait, 1), _LONGEST_RETRY_AFTER_S))
            visit = Visit(secrets.token_urlsafe(_ID_BYTES), session, person, now)
            self._open[visit.visit_id] = visit
            return visit

    @contextmanager
    def use(self, visit_id: str) -> Iterator[Visit]:
        """Yield a visit under its lock; raise `NoVisit` if no visit has this id."""
        with self._lock:
            now = self._clock()
            self._expire(now)
            visit = self._open.get(visit_id)
            if visit is None:
                raise self._unknown(visit_id)
            visit.touched = now
            self._open.move_to_end(visit_id)
        with visit.lock:
            if visit.is_closed:
                raise self._unknown(visit_id)
            yield visit

    def end(self, visit_id: str) -> None:
        """End a visit; a second time does nothing."""
        with self._lock:
            visit = self._open.get(visit_id)
            if visit is not None:
                self._drop(visit)

    def close_all(self) -> None:
        """End all visits."""
        with self._lock:
            for visit in list(self._open.values()):
                self._drop(visit)

    def _unknown(self, visit_id: str) -> NoVisit:
        if visit_id in self._ended:
            return NoVisit(410, "The visit is over: it was not used for a long time, or was ended.")
        return NoVisit(404, "There is no such visit. Check the address, or start with a task.")

    def _expire(self, now: float) -> None:
        while self._open:
            oldest = next(iter(self._open.values()))
            if now - oldest.touched <= self.ttl_s:
                return
            self._drop(oldest)

    def _evict(self, now: float) -> bool:
        """Drop a visit that is over, else one without an action; return whether there was one."""
        visits = self._open.values()
        unused = (v for v in visits if not v.begun and now - v.touched > _READING_S)
        candidate = next((v for v in visits if v.over), None) or next(unused, None)
        if candidate is not None:
            self._drop(candidate)
        return candidate is not None

    def _drop(self, visit: Visit) -> None:
        visit.is_closed = True
        del self._open[visit.visit_id]
        self._ended[visit.visit_id] = None
        while len(self._ended) > max(_REMEMBERED_AT_LEAST, 4 * self.max_sessions):
            self._ended.popitem(last=False)
