"""Files that survive a loss of power: on the disk before they take their names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a file; it has the old text or the new one, at every moment."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    flush(partial)
    replace(partial, path)


def replace(old: Path, new: Path) -> None:
    """Give a file, a link or a folder its name; a file or link that has it is replaced."""
    old.replace(new)
    flush(new.parent)


def flush(path: Path) -> None:
    """Wait until a file, or the list of a folder's names, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def flush_all(folder: Path) -> None:
    """Wait until a folder is on the disk with all that is in it."""
    for path in sorted(folder.rglob("*")):
        if not path.is_symlink():
            flush(path)
    flush(folder)
    flush(folder.parent)


def remove(folder: Path, mark: str) -> None:
    """Remove a folder that is complete as long as the file `mark` is in it."""
    (folder / mark).unlink(missing_ok=True)
    if folder.exists():
        flush(folder)
        shutil.rmtree(folder)
