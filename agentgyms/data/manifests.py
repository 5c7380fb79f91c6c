"""The manifest of a data set: its splits, with a digest of their items, and its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentgyms.core.errors import DataCorrupt
from agentgyms.data.users_files import parse_json, read_text

MANIFEST: Final = "manifest.json"


class Item(NamedTuple):
    """One task, page or game in a data set."""

    split: str
    key: str
    digest: str


class Part(NamedTuple):
    """One split of a data set: its number of items and a digest of their contents."""

    num_items: int
    digest: str


def digest_file(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def summarize(items: list[Item]) -> dict[str, Part]:
    """Return the splits of some items; the order of the items does not matter."""
    parts = {}
    for split in sorted({item.split for item in items}):
        lines = sorted(f"{item.key} {item.digest}\n" for item in items if item.split == split)
        parts[split] = Part(len(lines), hashlib.sha256("".join(lines).encode()).hexdigest()[:16])
    return parts


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a data set's folder; raise `DataCorrupt` if it cannot be read."""
    try:
        manifest = parse_json(read_text(folder / MANIFEST))
        parts_of(manifest)
        files = manifest["files"]
        if not isinstance(files, dict) or any(
            not isinstance(row, list) or [type(field) for field in row] != [int, str]
            for row in files.values()
        ):
            raise TypeError("'files' must hold a size and a sha256 for each name")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as e:
        raise DataCorrupt(
            f"the manifest of {folder} is damaged ({type(e).__name__}: {e}): "
            "import the data set again"
        ) from None
    return dict(manifest)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a data set's folder."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=0), encoding="utf-8")


def parts_of(manifest: Mapping[str, Any]) -> dict[str, Part]:
    """Return the splits that a manifest lists."""
    parts = {split: Part(*part) for split, part in manifest["splits"].items()}
    if any([type(field) for field in part] != [int, str] for part in parts.values()):
        raise TypeError("'splits' must hold pairs of a number and a digest")
    return parts
