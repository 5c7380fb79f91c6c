"""Sessions that have ended: their ids, why they ended, and the requests that opened them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

_MOST_REASONS: Final = 256


class ClosedSessions:
    """The last `most` sessions that have ended, in memory that is allocated once.

    They are digests of 64 bits: ids would lie between other objects, whose memory could not be
    freed. Threads may read at any time; one thread at a time may call `add`.
    """

    def __init__(self, most: int) -> None:
        self._sessions: NDArray[np.uint64] = np.zeros(most, np.uint64)
        self._requests: NDArray[np.uint64] = np.zeros(most, np.uint64)
        self._reason_numbers: NDArray[np.uint8] = np.zeros(most, np.uint8)
        self._reasons: list[str] = []
        self._added = 0

    def add(self, session_id: str, request_id: str, reason: str) -> None:
        """Add a session with the id of the request that opened it, or ""; it replaces the oldest.

        The reason why it ended is one of a few texts.
        """
        if reason not in self._reasons:
            del self._reasons[_MOST_REASONS - 1 :]
            self._reasons.append(reason)
        place = self._added % len(self._sessions)
        self._reason_numbers[place] = self._reasons.index(reason)
        self._requests[place] = _digest(request_id)
        self._sessions[place] = _digest(session_id)
        self._added += 1

    def reason(self, session_id: str) -> str:
        """Return why a session ended, "" if it is not remembered."""
        return self._find(self._sessions, session_id)

    def reason_of_request(self, request_id: str) -> str:
        """Return why the session that a request opened ended, "" if it is not remembered."""
        return self._find(self._requests, request_id)

    def _find(self, names: NDArray[np.uint64], name: str) -> str:
        if not name:
            return ""
        found = np.flatnonzero(names == _digest(name))
        return self._reasons[self._reason_numbers[found[0]]] if len(found) else ""


def _digest(name: str) -> np.uint64:
    """Return the digest of an id; 0 only for ""."""
    if not name:
        return np.uint64(0)
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest) or 1)
