"""Sessions that are gone: which they were, why, and by which request they had been opened."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

_MOST_REASONS: Final = 256


class Gone:
    """The last `most` sessions that went, in memory that is allocated once.

    Names are kept as digests of 64 bits. Keeping the names would cost more than their length:
    scattered between the objects of sessions, they would keep the memory of those from being given
    back. Safe with threads if `add` is called by one at a time.

    Args:
        most: How many are remembered.
    """

    def __init__(self, most: int) -> None:
        self._sessions: NDArray[np.uint64] = np.zeros(most, np.uint64)
        self._requests: NDArray[np.uint64] = np.zeros(most, np.uint64)
        self._why: NDArray[np.uint8] = np.zeros(most, np.uint8)
        self._reasons: list[str] = []
        self._added = 0

    def add(self, session_id: str, request_id: str, reason: str) -> None:
        """Remember a session; the one that went longest ago is forgotten for it.

        Args:
            session_id: Its name.
            request_id: That of the request that opened it, "" for none.
            reason: Why it is gone; there are few different ones.
        """
        if reason not in self._reasons:
            del self._reasons[_MOST_REASONS - 1 :]
            self._reasons.append(reason)
        place = self._added % len(self._sessions)
        self._why[place] = self._reasons.index(reason)
        self._requests[place] = _digest(request_id)
        self._sessions[place] = _digest(session_id)
        self._added += 1

    def reason(self, session_id: str) -> str:
        """Return why a session is gone, "" if none of that name is remembered."""
        return self._find(self._sessions, session_id)

    def reason_of_request(self, request_id: str) -> str:
        """Return why the session that a request opened is gone, "" if none is remembered."""
        return self._find(self._requests, request_id)

    def _find(self, names: NDArray[np.uint64], name: str) -> str:
        if not name:
            return ""
        found = np.flatnonzero(names == _digest(name))
        return self._reasons[self._why[found[0]]] if len(found) else ""


def _digest(name: str) -> np.uint64:
    """Return a number for a name, 0 for "" alone."""
    if not name:
        return np.uint64(0)
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest) or 1)
