"""The sandbox of engine workers and evaluators: they may read the engine and one data root."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Final

from . import landlock

_PR_SET_NO_NEW_PRIVS: Final = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_FILE = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE: Final = 1 << 14
_TRUNCATE_SINCE: Final = 3
_READ: Final = _READ_FILE | _READ_DIR
_SYSTEM: Final = ("/usr", "/lib", "/lib64", "/etc")
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_ruleset: int | None = None


def prepare(root: str, *, saves: bool) -> None:
    """Make the ruleset of files below a root, once for all children; if `saves`, they may write."""
    global _ruleset
    packages = [entry for entry in sys.path if entry]  # a .pth file may add other folders
    folders = {sys.prefix, sys.base_prefix, *packages, *_SYSTEM}
    rules = [(folder, _READ | _EXECUTE) for folder in sorted(folders)]
    rules += [(device, _READ_FILE | _WRITE_FILE) for device in _DEVICES]
    rules += [(str(part), _READ) for part in _parts(Path(root))]
    if saves:
        change = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE
        if landlock.version() >= _TRUNCATE_SINCE:
            change |= _TRUNCATE
        rules.append((str(Path(root, "experiments").resolve()), _READ | change))
    _ruleset = landlock.ruleset(rules)


def _parts(root: Path) -> list[Path]:
    """Return the folders that a root consists of, with links resolved."""
    data = Path(root, "data").resolve()
    linked = {entry.resolve() for entry in data.iterdir() if entry.is_symlink()}
    tasks = {
        entry.resolve().parent.parent
        for task in Path(data, "tasks").iterdir()
        for entry in task.iterdir()
        if entry.is_symlink()
    }
    return [data, *sorted(linked | tasks), Path(root, "experiments").resolve()]


def confine() -> int:
    """Confine this process permanently; return the version of Landlock, 0 if there is none."""
    if sys.platform != "linux":
        return 0
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return landlock.restrict(_ruleset)
