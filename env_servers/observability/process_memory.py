"""The memory of this process and its children, on Linux."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import Final

_PSS: Final = re.compile(rb"^Pss:\s+(\d+) kB", re.M)
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
_LARGE_BYTES: Final = 128 << 10


def stay_small() -> None:
    """Make the C library return freed memory to the system; call it before threads start.

    glibc's first freed large block, such as an image, makes it keep ever larger ones for good. It
    also keeps freed memory apart for up to eight threads a core. Other C libraries stay as they
    are.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
            mallopt(_M_ARENA_MAX, _ARENAS)


def children_bytes() -> int:
    """Return the resident bytes of all descendants; shared pages are divided; 0 without /proc."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_bytes().rpartition(b")")[2].split()[1])
        except OSError:  # it has just ended
            continue
        below.setdefault(parent, []).append(int(entry.parent.name))
    found = list(below.get(os.getpid(), ()))
    for pid in found:
        found += below.get(pid, ())
    return sum(_resident(pid) for pid in found)


def _resident(pid: int) -> int:
    place = Path(f"/proc/{pid}")
    try:
        match = _PSS.search((place / "smaps_rollup").read_bytes())
        if match:
            return int(match[1]) << 10
    except OSError:  # it has just ended, or it is confined
        pass
    try:
        return int((place / "statm").read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0
