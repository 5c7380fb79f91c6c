"""The cache of converted models: a folder for each file, known by the file's digest.

A folder is whole or not there. `conversion.json` in it has the size, modification time and sha256
of the source and of every file; a sha256 is computed where size or time differ.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import EnvUnavailable, path_end
from agentgyms.data.folders import recover_folder, replace_folder, resumable_folder
from agentgyms.data.manifests import digest_file
from agentgyms.data.progress_bar import working
from agentgyms.data.users_files import parse_json
from harness.types.errors import ConfigError

RECORD: Final = "conversion.json"

FORMAT: Final = 1
"""Version of what conversions write: a higher one converts again."""

_PAUSE_S: Final = 0.5
_DIGITS: Final = 12

Write = Callable[[Path, Path], None]
"""Converts a file into a new folder."""


def folder(source: Path, place: Path, label: str, write: Write) -> Path:
    """Return the folder in `place` of a converted file; `write` makes it if missing or damaged.

    A process that finds another one converting waits for it. Raises `ConfigError` if the cache
    cannot be written, and the errors of `write`.
    """
    try:
        digest = _known_digest(source, label, place) or digest_file(source)
        target = place / name_of(label, digest)
        if not _is_whole(target, digest):
            _make(source, digest, target, label, write)
    except OSError as e:
        raise ConfigError(
            f"{path_end(e.filename or place)} cannot be used: {e.strerror or e}; AGENTGYMS_DATA "
            "names another folder for converted models and data"
        ) from e
    return target


def name_of(label: str, digest: str) -> str:
    """Return the name of the folder of a converted file."""
    return f"{label}-{digest[:_DIGITS]}"


def _make(source: Path, digest: str, target: Path, label: str, write: Write) -> None:
    """Convert a file, or wait for the process that does."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.with_name(f".{target.name}-unfinished")
    refused: ConfigError | None = None
    with working(f"converting {label}, once") as show:
        while True:
            try:
                with resumable_folder(work):  # it stays after errors that are not caught here
                    recover_folder(work, target)
                    try:
                        if not _is_whole(target, digest):
                            _write(source, digest, work, write)
                            replace_folder(work, target)
                    except ConfigError as e:
                        refused = e
                break
            except EnvUnavailable:
                show(f"waiting for the process that converts {label}")
                time.sleep(_PAUSE_S)
    if refused is not None:
        raise refused


def _write(source: Path, digest: str, work: Path, write: Write) -> None:
    """Convert a file into the folder `new` in `work`, on the disk with its record."""
    new = work / "new"
    if new.exists():  # of a conversion that was killed
        shutil.rmtree(new)
    new.mkdir()
    write(source, new)
    if digest_file(source) != digest:
        raise ConfigError(f"{source.name} was changed while it was read: try again")
    files = sorted(path for path in new.rglob("*") if path.is_file())
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    record = {
        "format": FORMAT,
        "source": {"path": str(source), "entry": [*_stat(source), digest]},
        "files": {str(f.relative_to(new)): [*_stat(f), digest_file(f)] for f in files},
    }
    (new / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")


def _stat(file: Path) -> tuple[int, int]:
    """Return a file's size in bytes and its time of modification in nanoseconds."""
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns


def _read(target: Path) -> dict[str, Any]:
    """Return a folder's record; empty if it is missing, damaged or of another version."""
    try:
        record = parse_json((target / RECORD).read_text(encoding="utf-8"))
        entries = [record["source"]["entry"], *record["files"].values()]
        if record["format"] != FORMAT or any(_kinds(one) != [int, int, str] for one in entries):
            return {}
        return dict(record)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _kinds(entry: Any) -> list[type]:
    return [type(value) for value in entry]


def _known_digest(source: Path, label: str, place: Path) -> str | None:
    """Return the digest that an earlier conversion recorded of an unchanged file, else None."""
    if not place.is_dir():
        return None
    size, mtime = _stat(source)
    for other in place.iterdir():
        if not other.name.startswith(f"{label}-"):
            continue
        known = _read(other).get("source", {})
        if known.get("path") == str(source) and known["entry"][:2] == [size, mtime]:
            return str(known["entry"][2])
    return None


def _is_whole(target: Path, digest: str) -> bool:
    """Return whether a folder holds the conversion of the file with this digest, unchanged."""
    record = _read(target)
    if not record or record["source"]["entry"][2] != digest:
        return False
    return all(_is_unchanged(target / name, *entry) for name, entry in record["files"].items())


def _is_unchanged(file: Path, size: int, mtime: int, digest: str) -> bool:
    if not file.is_file():
        return False
    found = _stat(file)
    return found == (size, mtime) or (found[0] == size and digest_file(file) == digest)
