"""Locked working folders: one process at a time; interrupted work can be resumed."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentgyms.core.errors import DataError, EnvUnavailable

_REMOVED: Final = "-removed-"


@contextmanager
def lock_folder(folder: Path) -> Iterator[Path]:
    """Lock a folder, created if missing, against other processes; for a `with` block.

    The lock ends with the process, even if it is killed. Raises `EnvUnavailable` if another process
    holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        busy = EnvUnavailable(f"another process works in {folder}: wait until it is done")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        # The previous owner may have removed the folder after it was opened here.
        if not folder.is_dir() or not os.path.samestat(os.fstat(handle), folder.stat()):
            raise busy
        yield folder
    finally:
        os.close(handle)


@contextmanager
def resumable_folder(folder: Path) -> Iterator[Path]:
    """Lock a folder, created if missing, for work that may be interrupted; for a `with` block.

    The folder is removed when the block succeeds or raises a `DataError`. After anything else, such
    as a kill or a full disk, it stays unchanged for the next call. Raises `EnvUnavailable` if
    another process holds the lock.
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
    gone = folder.with_name(f"{folder.name}{_REMOVED}{os.getpid()}")
    folder.rename(gone)
    shutil.rmtree(gone)
