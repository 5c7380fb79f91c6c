"""The command and the environment variables of a role's fork server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_INHERITED: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def role_command(
    python: str, role: str, options: Mapping[str, Any], *, site_packages: bool = True
) -> list[str]:
    """Return the command of a role's fork server; the process table shows it: no secrets."""
    # Not -I, which would ignore PYTHONHASHSEED; the environment is trusted.
    flags = ["-P", "-s", "-B"] if site_packages else ["-P", "-s", "-B", "-S"]
    return [python, *flags, str(Path(__file__).with_name("child")), role, json.dumps(options)]


def role_environment(**more: str) -> dict[str, str]:
    """Return the environment variables of a fork server, without this process's secrets."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return (
        inherited
        | {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
            "PYTHONUTF8": "1",
            "MALLOC_ARENA_MAX": "1",  # an arena per thread would use up a child's address space
        }
        | more
    )
