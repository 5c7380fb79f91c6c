"""A lock on the folder of a run or an evaluation, so that one process at a time writes it.

The lock is `flock` on the file `.lock`, which ends with the process, however it ends. Linux carries
it over NFS, because the file is open for writing. The file names its holder. On file systems
without locks, or with locks that hold on one machine only, the last process that took the folder is
its holder, and an earlier one detects this by `FolderLock.check`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agentgyms.data.users_files import parse_json
from harness.runs import fsync
from harness.types.errors import FolderInUse

_log = logging.getLogger(__name__)

LOCK: Final = ".lock"

_WITHOUT_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

_WAIT_S: Final = 0.1
_MOST_WAITS: Final = 100

_held: Final[dict[Path, FolderLock]] = {}
"""The locks of this process, by folder."""


class FolderLock:
    """A lock on a folder, which `acquire` creates if it is missing; also a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / LOCK
        self._handle: int | None = None
        self._record = ""
        self._made: list[Path] = []
        self._found: set[Path] = set()

    def acquire(self) -> None:
        """Lock the folder anew; raise `FolderInUse`, or `OSError` if it cannot be written."""
        missing = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        self._made, self._found = missing, set(self.folder.iterdir())
        earlier = _held.pop(self.folder.resolve(), None)
        if earlier is not None:
            earlier.release()
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._flock(self._handle)
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
            holder = {"host": socket.gethostname(), "pid": os.getpid(), "started": now}
            self._record = json.dumps(holder) + "\n"
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, self._record.encode(), 0)
            os.fsync(self._handle)
        except BaseException:
            os.close(self._handle)
            self._handle = None
            raise
        _held[self.folder.resolve()] = self

    def _flock(self, handle: int, waits: int = _MOST_WAITS) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waits and self._holder_is_killed():
                # A program that it was about to start has the lock until it runs.
                time.sleep(_WAIT_S)
                return self._flock(handle, waits - 1)
            raise FolderInUse(
                f"{self.folder} is in use by {self._holder()}: wait until that one has ended, or "
                "end it"
            ) from None
        except OSError as e:
            if e.errno not in _WITHOUT_LOCKS:
                raise
            _log.warning(
                "%s is on a file system without locks (%s): if another process uses it, that one "
                "stops at its next step",
                self.folder,
                e.strerror,
            )

    def check(self) -> None:
        """Raise `FolderInUse` if another holder took the folder over; call it before writing."""
        if self._handle is None:
            raise FolderInUse(f"{self.folder} was taken over by another one of this process")
        if self._path.exists() and self._read() != self._record:
            raise FolderInUse(
                f"{self.folder} was taken over by {self._holder()}; this process writes nothing "
                "more into it"
            )

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._handle is None:
            return
        if self._read() == self._record:
            with suppress(OSError):
                os.ftruncate(self._handle, 0)
        os.close(self._handle)
        self._handle = None
        if _held.get(self.folder.resolve()) is self:
            del _held[self.folder.resolve()]

    def discard(self) -> None:
        """Remove all that was made since `acquire`, and release the lock; do nothing without it."""
        if self._handle is None:
            return
        with suppress(OSError):
            for path in set(self.folder.iterdir()) - self._found:
                fsync.discard(path)
        self.release()
        with suppress(OSError):
            for folder in self._made:  # the innermost first
                folder.rmdir()

    def __enter__(self) -> FolderLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def _holder(self) -> str:
        try:
            record = parse_json(self._read())
            return f"process {record['pid']} on {record['host']}, since {record['started']}"
        except (ValueError, KeyError, TypeError):
            return "another process"

    def _holder_is_killed(self) -> bool:
        """Return whether the process that the file names ended without giving the lock back."""
        try:
            record = parse_json(self._read())
            if record["host"] == socket.gethostname():
                os.kill(record["pid"], 0)
        except ProcessLookupError:
            return True
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            pass
        return False

    def forget(self) -> None:
        """Close the file without releasing the lock, which belongs to the parent process."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _forget_in_child() -> None:
    """Give up the parent's locks in a forked child; else they would outlive the parent."""
    for lock in _held.values():
        lock.forget()
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
