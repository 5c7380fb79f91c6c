"""Working folders: locked, resumed after an interruption, and put whole in an older one's place."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentgyms.core.errors import DataError, EnvUnavailable

_REMOVED: Final = "-removed-"


@contextmanager
def lock_folder(folder: Path) -> Iterator[Path]:
    """Lock a folder, made if missing, until the `with` block or the process ends.

    Raises `EnvUnavailable` if another process holds the lock.
    """
    busy = EnvUnavailable(f"another process works in {folder}: wait until it is done")
    # The previous owner may remove the folder between any two of these calls.
    try:
        _make(folder)
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        if not folder.parent.is_dir():
            raise
        raise busy from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(handle), folder.stat()):
                raise busy
        except (BlockingIOError, FileNotFoundError):
            raise busy from None
        yield folder
    finally:
        os.close(handle)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as e:
        # `Path.mkdir` raises it for a folder, too, that is removed before it looks.
        if not stat.S_ISDIR(os.lstat(e.filename).st_mode):
            raise


@contextmanager
def resumable_folder(folder: Path) -> Iterator[Path]:
    """Lock a folder, created if missing, for work that may be interrupted; for a `with` block.

    The folder is removed when the block succeeds or raises a `DataError`; after a kill or a full
    disk it stays for the next call. Raises `EnvUnavailable` if another process holds the lock.
    """
    with lock_folder(folder):
        # Remove what a killed process had not finished removing.
        for left in folder.parent.glob(f"{glob.escape(folder.name)}{_REMOVED}*"):
            shutil.rmtree(left, ignore_errors=True)
        try:
            yield folder
        except DataError:
            _remove(folder)
            raise
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder that this process has locked; an interruption leaves none to go on with."""
    gone = folder.with_name(f"{folder.name}{_REMOVED}{uuid.uuid4().hex}")
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)  # the next owner removes it, too


_HERE: Final = -100  # AT_FDCWD: names are relative to the working folder
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_NOT_HERE: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
"""Errors of a system or file system that cannot exchange two folders."""


def replace_folder(work: Path, target: Path) -> None:
    """Move the folder `new` in the locked folder `work`, beside the target, to the target.

    One system call exchanges it with an older target. On systems without that call, the older one
    is moved away first, and `recover_folder` undoes what an interruption leaves. The rest of `work`
    can be deleted.
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
