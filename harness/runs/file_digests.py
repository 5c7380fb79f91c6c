"""Sizes and SHA-256 of a folder's files, which detect damage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from agentgyms.data import writing
from agentgyms.data.manifests import digest_file

FileDigests = dict[str, tuple[int, str]]
"""Size and SHA-256 of files, by their paths in a folder."""


def flushed(folder: Path, names: Iterable[str]) -> FileDigests:
    """Wait until files are on the disk, and return their digests."""
    found = {}
    for name in names:
        writing.flush(folder / name)
        found[name] = ((folder / name).stat().st_size, digest_file(folder / name))
    return found


def names_of(folder: Path) -> list[str]:
    """Return the paths of all files in a folder, in order."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path.relative_to(folder).as_posix() for path in files]


def damage_of(folder: Path, files: Mapping[str, tuple[int, str]]) -> str:
    """Return the damage of a folder's files in words; "" if there is none."""
    for name, (size, digest) in files.items():
        path = folder / name
        try:
            missing = not path.is_file()
        except OSError as e:
            return f"{folder} names a file {name!r:.80} that cannot be read: {e.strerror}"
        if missing:
            return f"{path} is missing"
        if path.stat().st_size != size:
            return f"{path} has {path.stat().st_size} bytes, {size} were written"
        if digest_file(path) != digest:
            return f"{path} is damaged: its SHA-256 is not the one that was written"
    return ""
