"""Which files of a folder or an archive are the official ones, and which size is taken."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

from agentgyms.archives import copy_files
from agentgyms.errors import DataCorrupt, DataMissing

_PRODUCTS: Final = re.compile(r"items_shuffle(\w*)\.json")
_HUMAN: Final = "items_human_ins"
_KEPT: Final = re.compile(rf"(?:^|/)((?:items_shuffle|items_ins_v2|{_HUMAN})\w*\.json)$")
_BY_HAND: Final = (
    "expected items_shuffle.json with items_ins_v2.json, or items_shuffle_1000.json with "
    "items_ins_v2_1000.json, and items_human_ins.json if there are to be human goals; WebShop's "
    "own setup.sh downloads them"
)


class OfficialFiles(NamedTuple):
    """The files that a catalogue is built from.

    Attributes:
        products: `items_shuffle.json`, or a smaller one.
        attributes: `items_ins_v2.json`, or the one that goes with a smaller file.
        human: `items_human_ins.json`, or None if there is none.
    """

    products: Path
    attributes: Path
    human: Path | None

    @property
    def signature(self) -> list[list[object]]:
        """Names, sizes and times of change: equal where the files are the same as before."""
        files = [file for file in self if file is not None]
        return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def keep(name: str) -> str | None:
    """Return the name of an official file without its folders, None for any other file."""
    found = _KEPT.search(name)
    return found[1] if found else None


def locate(source: Path, scratch: Path) -> OfficialFiles:
    """Return the official files in a source.

    Of several sizes the whole catalogue is taken, else the largest file; a `source` that is one of
    the product files itself decides for that one.

    Args:
        source: A folder with the files at any depth, an archive, or a file of products.
        scratch: A folder into which an archive is unpacked, unless it was before.

    Raises:
        DataMissing: A file is not there; the message names what is expected.
        DataCorrupt: The archive is damaged, or a file is there twice.
    """
    if source.is_file() and source.suffix == ".json":
        if not _PRODUCTS.fullmatch(source.name):
            raise DataMissing(f"{source} is no file of products: {_BY_HAND}")
        return _together(source, _found(source.parent, deep=False))
    if source.is_file():
        source = _unpacked(source, scratch)
    elif not source.exists():
        raise DataMissing(f"there is no file or folder {source}")
    files = _found(source, deep=True)
    sizes = [name for name in files if _PRODUCTS.fullmatch(name)]
    if not sizes:
        raise DataMissing(f"{source} holds no products of WebShop: {_BY_HAND}")
    return _together(_largest(files, sizes, "items_shuffle.json"), files)


def _together(products: Path, files: dict[str, list[Path]]) -> OfficialFiles:
    """Return a file of products with those that belong to it."""
    match = _PRODUCTS.fullmatch(products.name)
    assert match is not None
    names = [f"items_ins_v2{match[1]}.json", "items_ins_v2.json"]
    there = [name for name in names if name in files]
    if not there:
        raise DataMissing(f"there is no {names[0]} beside {products}: {_BY_HAND}")
    human = [name for name in files if name.startswith(_HUMAN)]
    return OfficialFiles(
        products,
        _only(files, there[0]),
        _largest(files, human, f"{_HUMAN}.json") if human else None,
    )


def _found(folder: Path, *, deep: bool) -> dict[str, list[Path]]:
    """Return the official files below a folder by name."""
    files: dict[str, list[Path]] = {}
    for file in sorted(folder.rglob("*.json") if deep else folder.glob("*.json")):
        if file.is_file() and keep(file.name):
            files.setdefault(file.name, []).append(file)
    return files


def _largest(files: dict[str, list[Path]], names: list[str], whole: str) -> Path:
    if whole in names:
        return _only(files, whole)
    return _only(files, max(names, key=lambda name: files[name][0].stat().st_size))


def _only(files: dict[str, list[Path]], name: str) -> Path:
    first, *others = files[name]
    if others:
        raise DataCorrupt(f"{name} is there twice: {first} and {others[0]}; name one folder")
    return first


def _unpacked(archive: Path, scratch: Path) -> Path:
    """Return the folder with an archive's files; what an earlier call unpacked stays."""
    status = archive.stat()
    told = json.dumps([str(archive.resolve()), status.st_size, status.st_mtime_ns])
    done = scratch / "unpacked.json"
    if not done.is_file() or done.read_text(encoding="utf-8") != told:
        scratch.mkdir(parents=True, exist_ok=True)
        copy_files(archive, keep, scratch)
        done.write_text(told, encoding="utf-8")
    return scratch
