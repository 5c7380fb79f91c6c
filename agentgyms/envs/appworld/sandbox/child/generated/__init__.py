"""Builds data for the AppWorld engine: people, records and tasks of our own.

Runs in AppWorld's Python, where `build` makes a complete data root. What it writes holds API
documentation and schemas of AppWorld, whose licence forbids to publish them in plain text: build it
where it is used, and keep it out of repositories and images.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path


def version() -> str:
    """Return the version of the data: a digest of the code that generates it, 12 hex digits."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def build(root: str) -> None:
    """Build a data root in a folder, which gets `data/`; takes seconds, once in a process.

    The root appears whole or not at all: it is built beside its place and renamed.

    Args:
        root: Path of the root, which must not exist, or be empty.

    Raises:
        FileExistsError: The root is there and not empty.
    """
    from .root import write_root

    place = Path(root).absolute()
    if place.exists() and any(place.iterdir()):
        raise FileExistsError(f"{place} is not empty; build into a new folder, or remove it first")
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        write_root(beside, version())
        beside.chmod(0o755)
        os.replace(beside, place)  # noqa: PTH105  an empty folder is replaced
    finally:
        shutil.rmtree(beside, ignore_errors=True)
