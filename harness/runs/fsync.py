"""Folders on the disk: flushed before they get their name, removed so that none is half there."""

from __future__ import annotations

import shutil
from pathlib import Path

from agentgyms.data.writing import flush


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
