"""The state of an application that a `Server` serves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from agentgyms.serving.token_access import Access

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

EXTENSION: Final = "agentgyms"
"""Key of an application's state in its `extensions`."""

LEFT_FOR_S: Final = "agentgyms.left_for_s"
"""Key in a request's WSGI environment of a function that returns how long the client has been
gone, in seconds; -inf if it is there."""


class Clients(Protocol):
    """The clients that may be connected at a time, and the seconds for which one may be silent.

    `files_each` counts the files of a client's session, beside its connection.
    """

    files_each: int
    max_sessions: int
    ttl_s: float

    def close_all(self) -> None:
        """Close what clients have opened."""


class Served(Protocol):
    """The state at `app.extensions[EXTENSION]` of an application that a `Server` serves.

    The server sets `draining` to refuse requests, and `waiting` to a function that counts those
    that wait for a thread. `in_flight` are being answered. `access` decides who has the token.
    """

    access: Access
    draining: bool
    in_flight: int
    waiting: Callable[[], int]
    max_body_bytes: int

    @property
    def sessions(self) -> Clients:
        """The application's clients."""


class Connected:
    """Clients without sessions: how many may be connected, and how long one may be silent."""

    def __init__(self, most: int, ttl_s: float = 600.0) -> None:
        self.max_sessions, self.files_each, self.ttl_s = most, 0, ttl_s

    def close_all(self) -> None:
        """Do nothing: no client has anything here."""


C = TypeVar("C", bound=Clients)


class State(Generic[C]):
    """The parts of an application that a `Server` needs, for any kind of clients."""

    def __init__(self, access: Access, max_body_bytes: int, sessions: C) -> None:
        self.access, self.max_body_bytes = access, max_body_bytes
        self.draining = False
        self.in_flight = 0
        self.waiting: Callable[[], int] = lambda: 0
        self.sessions = sessions
        self._counting = threading.Lock()

    def count(self, change: int) -> None:
        """Add to the requests in flight."""
        with self._counting:
            self.in_flight += change


def counted(app: WSGIApplication, count: Callable[[int], None]) -> WSGIApplication:
    """Return the application with a count of its requests until each reply is handed over."""
    from werkzeug.wsgi import ClosingIterator

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        count(+1)
        try:
            return ClosingIterator(app(environ, start_response), lambda: count(-1))
        except BaseException:
            count(-1)
            raise

    return answer
