"""The files that a server may open: its connections, and those that its sessions need."""

from __future__ import annotations

import logging
import resource
from typing import Final

_OTHER_FILES: Final = 64

log = logging.getLogger(__name__)


def allow(wanted: int) -> int:
    """Let this process open as many files as wanted, if it may; return how many it may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def allow_sessions(most: int, files_each: int) -> None:
    """Let this process open the files of so many sessions and their clients; warn if it may not."""
    wanted = _connections(most) + files_each * most + _OTHER_FILES
    allowed = allow(wanted)
    if allowed < wanted:
        log.warning(
            "this process may open %d files, %d sessions and their clients need up to %d: raise "
            "the limit (ulimit -n %d), or allow fewer sessions or clients",
            allowed,
            most,
            wanted,
            wanted,
        )


def connection_limit(most_sessions: int, files_each: int) -> int:
    """Return how many connections may be open; at least half of the files if there are too few."""
    wanted = _connections(most_sessions)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return wanted
    left = files - _OTHER_FILES
    return max(16, min(wanted, max(left - files_each * most_sessions, left // 2)))


def _connections(sessions: int) -> int:
    # Every client keeps a connection open, also between two turns; some may be stale.
    return 4 * sessions + 100
