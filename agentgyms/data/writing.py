"""Writes every file that outlives a command: whole in place of an older one, or by whole lines."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import IO, Final, Self

PARTIAL: Final = ".partial"
"""Suffix of a file that is not complete yet."""

_STREAMS: Final = ("/dev/std", "/dev/fd/", "/proc/")
"""Beginnings of names of streams that are open, not of files."""
_CHUNK: Final = 1 << 16


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path`, also a link, whole and at once when the block ends."""
    partial = path.with_name(f"{path.name}{PARTIAL}")
    partial.unlink(missing_ok=True)  # a link that somebody left there is not followed
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        replace(partial, path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


@contextmanager
def replacing_named(path: Path) -> Iterator[IO[bytes]]:
    """Open a user's file as `replacing`; follow links, keep the mode, write devices as they are."""
    if str(path).startswith(_STREAMS) or (path.exists() and not path.is_file()):
        with path.open("wb") as stream:
            yield stream
        return
    place = path.resolve()
    with replacing(place) as file:
        if place.exists():
            shutil.copymode(place, place.with_name(f"{place.name}{PARTIAL}"))
        yield file


def write(path: Path, text: str) -> None:
    """Write a file in one step; see `replacing`."""
    with replacing(path) as file:
        file.write(text.encode())


def write_named(path: Path, text: str, errors: str = "strict") -> None:
    """Write a file that a user has named in one step; see `replacing_named`."""
    content = text.encode(errors=errors)
    with replacing_named(path) as file:
        file.write(content)


def replace(old: Path, new: Path) -> None:
    """Rename a file, link or folder, on the disk too; an existing file or link is replaced."""
    old.replace(new)
    flush(new.parent)


def flush(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class AppendedFile:
    """A file to which several processes append whole texts; every `OSError` names the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)  # a close must not write what a full disk refused

    def append(self, text: bytes, *, wait: bool = False) -> int:
        """Append a text whole or not at all; return where it starts. `wait` until it is on disk.

        Raises `OSError` also if the file was deleted or replaced: the data would be lost.
        """
        with self._locked():
            if not os.path.samestat(os.fstat(self._file.fileno()), self.path.stat()):
                raise OSError(errno.ENOENT, "it was replaced by another file")
            start = self._size() or 0
            left = memoryview(text)
            try:
                while left:
                    left = left[self._file.write(left) :]
                if wait:
                    os.fsync(self._file.fileno())
            except BaseException:
                with suppress(OSError):
                    self._cut(start)
                raise
            return start

    def mend(self, is_whole: Callable[[bytes], bool], is_head: Callable[[bytes], bool]) -> int:
        """Take away what an interruption has left at the end, and return its number of bytes.

        A last line without a newline is removed; if it `is_whole`, it gets its newline instead.
        Then a last line is removed that announces further lines (`is_head`), which are missing.
        """
        with self._locked():
            size = self._size()
            if not size:  # empty, or no file
                return 0
            end = size
            tail = self._last_line(end)
            if not tail.endswith(b"\n"):
                if is_whole(tail):
                    self._file.write(b"\n")
                    end, size = end + 1, size + 1
                else:
                    end -= len(tail)
            last = self._last_line(end)
            if is_head(last):
                end -= len(last)
            if end < size:
                self._cut(end)
            return size - end

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from appending; file systems without locks are left as they are."""
        descriptor = self._file.fileno()
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        except OSError as e:
            raise OSError(e.errno, e.strerror or str(e), str(self.path)) from e
        finally:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _size(self) -> int | None:
        found = os.fstat(self._file.fileno())
        return found.st_size if S_ISREG(found.st_mode) else None

    def _cut(self, size: int) -> None:
        if self._size() is not None:
            os.ftruncate(self._file.fileno(), size)

    def _last_line(self, end: int) -> bytes:
        """Return the last line of the first `end` bytes, with its newline if it has one."""
        found = b""
        with self.path.open("rb") as file:
            while end and b"\n" not in found[:-1]:
                start = max(0, end - max(_CHUNK, len(found)))
                file.seek(start)
                found, end = file.read(end - start) + found, start
        return found[found.rfind(b"\n", 0, -1) + 1 :]
