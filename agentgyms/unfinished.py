"""Folders in which long work goes on after an interruption, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentgyms.errors import DataError, EnvUnavailable


@contextmanager
def held(folder: Path) -> Iterator[Path]:
    """Hold a folder, so that no other process works in it; for a `with` block.

    A process that is killed holds nothing any more.

    Args:
        folder: The folder; made if it is not there.

    Raises:
        EnvUnavailable: Another process works in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, folder)
        yield folder
    finally:
        os.close(handle)


@contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Hold a folder for work that may be interrupted; for a `with` block.

    It is removed when the work is done, and when its data turn out to be missing or damaged. After
    anything else, such as a kill or a full disk, it stays as it is for the next call.

    Args:
        folder: The folder; made if it is not there.

    Raises:
        EnvUnavailable: Another process works in it.
    """
    with held(folder):
        try:
            yield folder
        except DataError:
            shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def _lock(handle: int, folder: Path) -> None:
    busy = EnvUnavailable(f"another process works in {folder}: wait until it is done")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise busy from None
    # Who held the folder before may have removed it after it was opened here.
    if not folder.is_dir() or not os.path.samestat(os.fstat(handle), folder.stat()):
        raise busy
