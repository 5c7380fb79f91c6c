"""Puts a finished folder in the place of an older one: readers find the one or the other, whole."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path
from typing import Final

_HERE: Final = -100  # AT_FDCWD: names are relative to the working folder
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_NOT_HERE: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
"""Errors of a system or file system that cannot exchange two folders."""


def replace_folder(work: Path, target: Path) -> None:
    """Move the folder `new` in the locked folder `work`, beside the target, to the target.

    An older target is exchanged for it by one system call. Where there is none, it is moved away
    first, and `recover_folder` undoes what an interruption leaves. The rest of `work` can be
    deleted.
    """
    ready, old = work / "ready", work / "old"
    (work / "new").rename(ready)  # "ready" may be the older one
    if not target.exists():
        ready.rename(target)
    elif not exchange(ready, target):
        target.rename(old)
        try:
            ready.rename(target)
        except OSError:
            old.rename(target)
            raise


def recover_folder(work: Path, target: Path) -> None:
    """Undo or complete a `replace_folder` that was interrupted."""
    old = work / "old"
    if old.exists() and not target.exists():
        old.rename(target)
    for left in (old, work / "ready"):
        if left.exists():
            shutil.rmtree(left)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders by one system call; return False where there is none that can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in _NOT_HERE:
        return False
    raise OSError(error, os.strerror(error), str(one), None, str(other))
