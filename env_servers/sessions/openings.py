"""The requests that open sessions: the same one again gets the same session."""

from __future__ import annotations

import json
import time
from hashlib import blake2b
from threading import Condition, Lock
from typing import Any, Final

from agentgyms.core.errors import BadRequest
from env_servers.sessions import requester
from env_servers.sessions.errors import Refusal

LOOK_S: Final = 0.25
"""Who waits looks so often whether its client is still there."""


def digest_of(operation: str, argument: Any) -> str:
    """Return a digest of a request's content; raise `BadRequest` if it is nested too deeply."""
    try:
        text = json.dumps([operation, argument], sort_keys=True)
    except RecursionError:
        raise BadRequest("the request is nested too deeply") from None
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Opening:
    """A request that opens a session; `session_id` is "" until then, `asked` its content's digest.

    `copies` of the request have come since; `waiting` of them wait for the session now.
    """

    def __init__(self, asked: str) -> None:
        self.asked, self.session_id, self.failed = asked, "", False
        self.copies = self.waiting = 0

    def in_vain(self) -> bool:
        """Return whether nobody waits for the session any more."""
        return not self.waiting and requester.is_gone()


class Openings:
    """The requests whose session is being opened or open, by id; callers hold the lock."""

    def __init__(self, lock: Lock) -> None:
        self._changed = Condition(lock)
        self._by_id: dict[str, Opening] = {}

    def earlier(self, request_id: str, asked: str, busy_s: float) -> str | None:
        """Return the session that an earlier copy of a request opened; None if there was none.

        Waits `busy_s` for one that is being opened. Raises `Refusal` if it is not open by then, or
        the earlier request has another digest.
        """
        deadline = time.monotonic() + busy_s
        while (opening := self._by_id.get(request_id)) is not None:
            if opening.asked != asked:
                raise Refusal(
                    "request_conflict",
                    f"'request_id' {request_id!r} was sent with another request: expected the same "
                    "one again, or another id",
                )
            opening.copies += 1
            opening.waiting += 1
            try:
                while not (opening.session_id or opening.failed):
                    requester.check()
                    left_s = deadline - time.monotonic()
                    if left_s <= 0:
                        raise Refusal("timeout", "the session of this request is being opened")
                    self._changed.wait(min(left_s, LOOK_S))
            finally:
                opening.waiting -= 1
            if opening.session_id:
                return opening.session_id
        return None

    def begin(self, request_id: str, asked: str) -> Opening:
        """Note that a request is opening a session."""
        opening = Opening(asked)
        if request_id:
            self._by_id[request_id] = opening
        return opening

    def end(self, request_id: str, opening: Opening, session_id: str) -> None:
        """Note the session that a request has opened, "" if it failed."""
        opening.session_id, opening.failed = session_id, not session_id
        if not session_id:
            self.forget(request_id)
        self._changed.notify_all()

    def forget(self, request_id: str) -> None:
        """Forget a request, whose session has ended."""
        self._by_id.pop(request_id, None)

    def num_copies(self, request_id: str) -> int:
        """Return how many copies of a request have come."""
        opening = self._by_id.get(request_id)
        return opening.copies if opening is not None else 0
