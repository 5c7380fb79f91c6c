"""Atomic writes: a file is on the disk before it gets its name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

PARTIAL: Final = ".partial"
"""Suffix of a file that is not complete yet."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces `path` when the `with` block ends.

    At every moment `path` has its old content or the complete new content.
    """
    partial = path.with_name(f"{path.name}{PARTIAL}")
    with partial.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    replace(partial, path)


def write(path: Path, text: str) -> None:
    """Write a file in one step; see `replacing`."""
    with replacing(path) as file:
        file.write(text.encode())


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


def flush_all(folder: Path) -> None:
    """Wait until a folder and everything in it is on the disk."""
    for path in sorted(folder.rglob("*")):
        if not path.is_symlink() and not path.is_dir():
            flush(path)
    flush_folders(folder)


def flush_folders(folder: Path) -> None:
    """Wait until a folder, all folders in it and the one above list their names on the disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            flush(path)
    flush(folder)
    flush(folder.parent)


def remove(folder: Path, mark: str) -> None:
    """Remove a folder; its file `mark`, which marks it as complete, is removed first."""
    if not (folder / mark).is_dir():  # a folder marks nothing
        (folder / mark).unlink(missing_ok=True)
    if folder.exists():
        flush(folder)
        shutil.rmtree(folder)


def discard(path: Path) -> None:
    """Remove a file, a link or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
