"""Finds the folders of evaluations in a folder that strangers may have filled."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from agentgyms.core.errors import plain
from agentgyms.data.users_files import MOST_BYTES
from harness.evaluation.episode_store import RECORDINGS
from harness.evaluation.results import RESULT, STARTED
from harness.types.errors import ResultError

_MARKS: Final = {RESULT, RECORDINGS, STARTED}
"""A folder with one of these files is meant as an evaluation."""

_READ: Final = {RESULT: MOST_BYTES, RECORDINGS: 4 << 30}
"""The files that are read, and most bytes of each."""

MOST: Final = 10_000
"""Most evaluations of a leaderboard."""

_DEEPEST: Final = 6
_MOST_LABEL: Final = 80
_MOST_SLUG: Final = 48


@dataclass(frozen=True, slots=True)
class Submission:
    """One folder of an evaluation."""

    folder: Path
    label: str  # its path inside the leaderboard's folder, as text that can be shown
    slug: str  # a name for files, equal wherever the leaderboard's folder lies


def find(root: Path) -> list[Submission]:
    """Return the evaluations in a folder, not in links; `ResultError` for none or too many."""
    if not root.is_dir():
        raise ResultError(f"{root} is no folder: expected one that holds folders of evaluations")
    found: list[Submission] = []
    for place, folders, files in os.walk(root):
        depth = len(Path(place).relative_to(root).parts)
        folders.sort()
        links = {n for n in folders if os.path.islink(os.path.join(place, n))}  # noqa: PTH114, PTH118
        if _MARKS & (set(files) | links):
            found.append(_submission(root, Path(place)))
            folders.clear()
        if depth >= _DEEPEST:
            folders.clear()
        if len(found) > MOST:
            raise ResultError(f"{root} holds more than {MOST} evaluations: take several folders")
    if not found:
        raise ResultError(
            f"{root} holds no evaluation: expected folders with {RESULT} and {RECORDINGS}, as "
            "harness eval writes them"
        )
    return sorted(found, key=lambda one: (one.label, one.slug))


def _submission(root: Path, folder: Path) -> Submission:
    name = folder.relative_to(root).as_posix() if folder != root else folder.resolve().name
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_MOST_SLUG].strip("-")
    digest = sha256(os.fsencode(name)).hexdigest()[:8]
    return Submission(folder, plain(name, _MOST_LABEL), f"{readable or 'evaluation'}-{digest}")


def check_files(folder: Path) -> None:
    """Refuse files to be read that are missing, not plain, or too large."""
    for name, most in _READ.items():
        try:
            status = (folder / name).lstat()
        except FileNotFoundError:
            raise ResultError(f"{name} is missing") from None
        except OSError as e:
            raise ResultError(f"{name} cannot be read: {e.strerror}") from None
        if not stat.S_ISREG(status.st_mode):
            raise ResultError(f"{name} is a link, a folder or a device: expected a plain file")
        if status.st_size > most:
            raise ResultError(f"{name} has {status.st_size:,} bytes: at most {most:,} are read")
