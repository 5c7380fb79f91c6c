"""The sandbox of executors: Landlock, seccomp, limits and dropped privileges.

It is applied in each child before any code of an agent runs, as root or as another user, in a
container or not; if the system lacks a part, the other parts still apply.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from . import landlock, seccomp

_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38
_CAPABILITIES_V3: Final = 0x20080522
_NICENESS: Final = 5
_OPEN_FILES: Final = 64
_ruleset: int | None = None


def prepare() -> None:
    """Make, once for all children, the ruleset of files that they may read."""
    global _ruleset
    _ruleset = landlock.ruleset(landlock.library_rules())


def confine(connection: int, *, memory_mb: int) -> dict[str, Any]:
    """Confine this process permanently, and return the parts in force.

    `connection` is the only file descriptor above 2 that stays open; `memory_mb` may be mapped in
    addition to the current amount. The result has `landlock`, the version of its interface or 0;
    `seccomp`; `memory`, whether it is limited; `missing`, the parts that this system lacks.
    """
    os.nice(_NICENESS)
    with suppress(OSError):  # if memory runs out, the kernel ends agents' code first
        Path("/proc/self/oom_score_adj").write_text("500")
    memory = _limit(memory_mb)
    _drop_privileges()
    files = landlock.restrict(_ruleset)
    _close_all_but(connection)
    # Without Landlock, opening files is refused: any file of the user could be read, and the memory
    # of the user's processes.
    calls = seccomp.restrict(opens=bool(files))
    parts = {"Landlock": files, "seccomp": calls, "a memory limit": memory}
    return {
        "landlock": files,
        "seccomp": calls,
        "memory": memory,
        "missing": [name for name, in_force in parts.items() if not in_force],
    }


def _limit(memory_mb: int) -> bool:
    """Set resource limits; return whether memory is limited."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (memory_mb << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (OSError, ValueError):
        return False
    return True


def _drop_privileges() -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Then other processes of the user, such as other executors, cannot read its memory.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    with suppress(AttributeError):
        libc.capset(header, (ctypes.c_uint32 * 6)())  # no capabilities, for root as well


def _close_all_but(descriptor: int) -> None:
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, max(descriptor + 1, 1 << 16))
