"""Counts of worker processes of engines, for servers' metrics: started, recycled, lost, alive."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Final, Literal

End = Literal["closed", "recycled", "lost"]


@dataclass(slots=True)
class Count:
    """Counts of one kind of worker; `recycled` ones had done enough, `lost` ones died or hung."""

    starts: int = 0
    recycled: int = 0
    lost: int = 0
    alive: int = 0


_counts: Final[dict[str, Count]] = {}
_lock = threading.Lock()


def started(kind: str) -> None:
    """Count a started worker; its kind, such as `alfworld-engine`, is a label with few values."""
    with _lock:
        count = _counts.setdefault(kind, Count())
        count.starts += 1
        count.alive += 1


def ended(kind: str, how: End = "closed") -> None:
    """Count the end of a started worker; `closed` means that it was not needed any more."""
    with _lock:
        count = _counts.setdefault(kind, Count())
        count.alive = max(count.alive - 1, 0)
        count.recycled += how == "recycled"
        count.lost += how == "lost"


def counts() -> dict[str, Count]:
    """Return the counts by kind."""
    with _lock:
        return {
            kind: Count(count.starts, count.recycled, count.lost, count.alive)
            for kind, count in sorted(_counts.items())
        }


def _reset_after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _counts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
