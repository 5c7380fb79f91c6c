"""Counts of the child processes that engines run in: started, replaced in good time, lost, alive.

Whoever starts a worker says so here, and whoever ends it. Servers report the counts; nothing
depends on them.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Final, Literal

End = Literal["closed", "recycled", "lost"]


@dataclass(slots=True)
class Count:
    """Workers of one kind in this process's life.

    Attributes:
        starts: How many were started.
        recycled: How many were replaced because they had served long enough.
        lost: How many died, hung or broke the protocol.
        alive: How many run now.
    """

    starts: int = 0
    recycled: int = 0
    lost: int = 0
    alive: int = 0


_counts: Final[dict[str, Count]] = {}
_lock = threading.Lock()


def started(kind: str) -> None:
    """Count a worker that was started.

    Args:
        kind: What it does, such as `alfworld-engine`; one of few.
    """
    with _lock:
        count = _counts.setdefault(kind, Count())
        count.starts += 1
        count.alive += 1


def ended(kind: str, how: End = "closed") -> None:
    """Count the end of a worker that was counted as started.

    Args:
        kind: What it did.
        how: `closed` when it was not needed any more, `recycled` or `lost`.
    """
    with _lock:
        count = _counts.setdefault(kind, Count())
        count.alive = max(count.alive - 1, 0)
        count.recycled += how == "recycled"
        count.lost += how == "lost"


def counts() -> dict[str, Count]:
    """Return the counts of every kind of which there was a worker."""
    with _lock:
        return {
            kind: Count(count.starts, count.recycled, count.lost, count.alive)
            for kind, count in sorted(_counts.items())
        }


def _begin_anew() -> None:
    """A fork of this process has none of its workers."""
    global _lock
    _lock = threading.Lock()
    _counts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
