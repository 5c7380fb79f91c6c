"""Finds WebShop's official files in a folder or an archive, and selects one size."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.archives import copy_files
from agentgyms.data.users_files import files_below

_PRODUCTS: Final = re.compile(r"items_shuffle(\w*)\.json")
_HUMAN: Final = "items_human_ins"
_OFFICIAL: Final = re.compile(rf"(?:^|/)((?:items_shuffle|items_ins_v2|{_HUMAN})\w*\.json)$")
_BY_HAND: Final = (
    "expected items_shuffle.json with items_ins_v2.json, or items_shuffle_1000.json with "
    "items_ins_v2_1000.json, and items_human_ins.json if there are to be human goals; WebShop's "
    "own setup.sh downloads them"
)


class OfficialFiles(NamedTuple):
    """`items_shuffle.json`, `items_ins_v2.json` (or smaller ones), and `items_human_ins.json`."""

    products: Path
    attributes: Path
    human: Path | None


def official_name(name: str) -> str | None:
    """Return the name of an official file without its folders, None for any other file."""
    found = _OFFICIAL.search(name)
    return found[1] if found else None


def locate(source: Path, scratch: Path) -> OfficialFiles:
    """Return the official files in a folder (at any depth), an archive, or a file of products.

    It takes the full catalogue, or else the largest. An archive is unpacked into `scratch` once.
    """
    if source.is_file() and source.suffix == ".json":
        if not _PRODUCTS.fullmatch(source.name):
            raise DataMissing(f"{source} is not a product file: {_BY_HAND}")
        return _with_companions(source, _official_files(source.parent, deep=False))
    if source.is_file():
        # The folder with an archive's files; an archive unpacked earlier is reused.
        status = source.stat()
        identity = json.dumps([str(source.resolve()), status.st_size, status.st_mtime_ns])
        done = scratch / "unpacked.json"
        if not done.is_file() or done.read_text(encoding="utf-8") != identity:
            scratch.mkdir(parents=True, exist_ok=True)
            copy_files(source, official_name, scratch)
            done.write_text(identity, encoding="utf-8")
        source = scratch
    elif not source.exists():
        raise DataMissing(f"there is no file or folder {source}")
    files = _official_files(source, deep=True)
    sizes = [name for name in files if _PRODUCTS.fullmatch(name)]
    if not sizes:
        raise DataMissing(f"{source} holds no products of WebShop: {_BY_HAND}")
    return _with_companions(_largest(files, sizes, "items_shuffle.json"), files)


def _with_companions(products: Path, files: dict[str, list[Path]]) -> OfficialFiles:
    """Return a product file with the attribute and instruction files of its size."""
    match = _PRODUCTS.fullmatch(products.name)
    assert match is not None
    names = [f"items_ins_v2{match[1]}.json", "items_ins_v2.json"]
    present = [name for name in names if name in files]
    if not present:
        raise DataMissing(f"there is no {names[0]} beside {products}: {_BY_HAND}")
    human = [name for name in files if name.startswith(_HUMAN)]
    return OfficialFiles(
        products,
        _single(files, present[0]),
        _largest(files, human, f"{_HUMAN}.json") if human else None,
    )


def _official_files(folder: Path, *, deep: bool) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for file in files_below(folder) if deep else sorted(filter(Path.is_file, folder.iterdir())):
        found = files.setdefault(file.name, []) if official_name(file.name) else []
        if not any(file.samefile(other) for other in found):  # it is reached through a link, too
            found.append(file)
    return files


def _largest(files: dict[str, list[Path]], names: list[str], whole: str) -> Path:
    if whole in names:
        return _single(files, whole)
    return _single(files, max(names, key=lambda name: files[name][0].stat().st_size))


def _single(files: dict[str, list[Path]], name: str) -> Path:
    first, *others = files[name]
    if others:
        raise DataCorrupt(
            f"{name} exists twice: {first} and {others[0]}; give the folder of one of them"
        )
    return first
