"""Data sets that benchmarks need: where they are, how they come here, whether they are whole.

Nothing is downloaded unless asked for. A data set is a folder below `home()` with the files it
needs and a manifest with the size and sha256 of each.
"""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import platformdirs
from tqdm import tqdm

from agentgyms.archives import read_files
from agentgyms.download import digest_file, download
from agentgyms.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.manifests import (
    MANIFEST,
    Item,
    Part,
    parts_of,
    read_manifest,
    summarize,
    write_manifest,
)
from agentgyms.unfinished import unfinished

DATA_SETS: Final = {
    "appworld": "agentgyms.appworld.engine.sources:DATA_SET",
    "alfworld": "agentgyms.alfworld.dataset:DATA_SET",
    "sotopia": "agentgyms.sotopia.dataset:DATA_SET",
    "webshop": "agentgyms.webshop.dataset:DATA_SET",
}
"""Every data set by name, and where it is described."""

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class DataSet:
    """What is known of a data set.

    Its files are copied as `keep` and `describe` say, or made by `build`.

    Attributes:
        name: Its name here.
        title: What it is, in a few words.
        licence: The terms of its use.
        url: Where it is downloaded, "" if nowhere; the variable `AGENTGYMS_<NAME>_DATA_URL`
            overrides it.
        keep: Maps a file's name in a folder or archive to its name here, or to None.
        describe: Returns the item that a file holds, from its name here and its content, or None;
            raises ValueError if the content is damaged.
        parts: The splits, as the release has them; empty if there is no one release.
        extras: Splits that may be there beside those of the release.
        size: Bytes of the download, if known.
        sha256: Its checksum, if known.
        build: Writes the data set of a folder or archive to a folder, with progress bars or
            without, and returns its manifest. What an interrupted call left is in that folder
            when the next one begins.
        by_hand: How to get the files where `url` is "".
    """

    name: str
    title: str
    licence: str
    url: str
    keep: Callable[[str], str | None] | None = None
    describe: Callable[[str, bytes], Item | None] | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    extras: frozenset[str] = frozenset()
    size: int | None = None
    sha256: str | None = None
    build: Callable[[Path, Path, bool], dict[str, Any]] | None = None
    by_hand: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """What there is of a data set on this machine.

    Attributes:
        name: The data set.
        title: What it is.
        folder: Where it is, or None if it is not here.
        parts: Its splits here.
        differences: How they differ from the release, one sentence each.
        damage: Why it cannot be used, "" if nothing is known against it.
    """

    name: str
    title: str
    folder: Path | None
    parts: Mapping[str, Part]
    differences: tuple[str, ...]
    damage: str = ""


def home() -> Path:
    """Return the folder of all data sets: `AGENTGYMS_DATA`, else the user's cache folder.

    Raises:
        BadOption: The variable names something that is no folder.
    """
    chosen = os.environ.get("AGENTGYMS_DATA")
    if not chosen:
        return Path(platformdirs.user_cache_dir("agentgyms"))
    folder = Path(chosen).expanduser()
    if folder.exists() and not folder.is_dir():
        raise BadOption(f"AGENTGYMS_DATA={chosen} is no folder: expected one, or a new name")
    return folder


def data_set(name: str) -> DataSet:
    """Return what is known of a data set.

    Raises:
        BadOption: There is none of this name.
    """
    if name not in DATA_SETS:
        raise BadOption(f"no data set {name!r}: expected one of {', '.join(sorted(DATA_SETS))}")
    module, _, attribute = DATA_SETS[name].partition(":")
    described: DataSet = getattr(importlib.import_module(module), attribute)
    return described


def find(name: str) -> Path:
    """Return the folder of a data set.

    Raises:
        DataMissing: It is not on this machine; the message names the commands that bring it.
    """
    folder = home() / data_set(name).name
    if not (folder / MANIFEST).exists():
        known = data_set(name)
        download_it = f"download it with `agentgyms data fetch {name}`, or " if known.url else ""
        raise DataMissing(
            f"the data set {name} ({known.title}) is not in {folder}: {download_it}take it from a "
            f"folder or archive with `agentgyms data import {name} PATH`"
        )
    return folder


def command(name: str) -> str:
    """Return the command that brings a data set to this machine."""
    return f"agentgyms data {'fetch' if data_set(name).url else 'import'} {name}"


def fetch(name: str, *, allow_other: bool = False, progress: bool = True) -> Path:
    """Download a data set and import it; a cut download goes on where it stopped.

    Args:
        name: One of `DATA_SETS`.
        allow_other: As for `import_data`.
        progress: Show progress bars.

    Returns:
        Its folder.

    Raises:
        DataMissing: The download failed.
        DataCorrupt: What arrived is not the data set; nothing changed here.
    """
    known = data_set(name)
    variable = f"AGENTGYMS_{name.upper()}_DATA_URL"
    url = os.environ.get(variable, known.url)
    if not url:
        raise DataMissing(
            f"{name} has no address to download: {known.by_hand}; then run `agentgyms data import "
            f"{name} PATH`. If there is an archive of them somewhere, set {variable} to its address"
        )
    official = url == known.url
    archive = download(
        url,
        home() / "downloads" / f"{name}-{url.rstrip('/').rpartition('/')[2]}",
        size=known.size if official else None,
        sha256=known.sha256 if official else None,
        progress=progress,
    )
    try:
        return import_data(name, archive, allow_other=allow_other, progress=progress)
    finally:
        archive.unlink()


def import_data(
    name: str, path: str | os.PathLike[str], *, allow_other: bool = False, progress: bool = True
) -> Path:
    """Copy a data set from a folder or an archive to where the environments look for it.

    Args:
        name: One of `DATA_SETS`.
        path: A folder that holds the data set at any depth, a .zip or a .tar.
        allow_other: Accept contents that are not those of the release.
        progress: Show a progress bar.

    Returns:
        Its folder. An older copy of the data set is replaced.

    Raises:
        DataMissing: There is nothing at `path`.
        DataCorrupt: A file is damaged, or the contents are not the release's; nothing changed here.
    """
    known = data_set(name)
    target = home() / name
    home().mkdir(parents=True, exist_ok=True)
    if known.build is not None:
        return _build(known, Path(path), target, allow_other=allow_other, progress=progress)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=home()) as scratch:
        fresh = Path(scratch, "new")
        manifest = _unpack(known, Path(path), fresh, progress=progress)
        if not allow_other:
            _check_release(known, Path(path), parts_of(manifest))
        _put(fresh, target, Path(scratch, "old"))
    return target


def _check_release(known: DataSet, source: Path, parts: Mapping[str, Part]) -> None:
    if different := differences(known, parts):
        raise DataCorrupt(
            f"{source} is not the release of {known.name}: {'; '.join(different)}. Get the "
            "release, or accept this one with --allow-other"
        )


def _put(fresh: Path, target: Path, old: Path) -> None:
    """Put a new folder in place, the one before it aside."""
    if target.exists():
        target.rename(old)
    fresh.rename(target)


def _take_back(old: Path, target: Path) -> None:
    """Undo or end what `_put` was killed in."""
    if old.exists() and target.exists():
        shutil.rmtree(old)
    elif old.exists():
        old.rename(target)


def _build(
    known: DataSet, source: Path, target: Path, *, allow_other: bool, progress: bool
) -> Path:
    """Build a data set beside its place; what an interruption leaves is there for the next call."""
    assert known.build is not None
    with unfinished(target.with_name(f".{known.name}-unfinished")) as work:
        _take_back(work / "old", target)
        manifest = known.build(source, work / "new", progress)
        if not allow_other:
            _check_release(known, source, manifest["splits"])
        write_manifest(work / "new", _about(known) | manifest)
        _put(work / "new", target, work / "old")
    return target


def _about(known: DataSet) -> dict[str, Any]:
    return {"name": known.name, "title": known.title, "licence": known.licence}


def _unpack(known: DataSet, source: Path, target: Path, *, progress: bool) -> dict[str, Any]:
    """Write the files and the manifest of a data set to a new folder."""
    assert known.keep is not None
    assert known.describe is not None
    files: dict[str, tuple[int, str]] = {}
    items: list[Item] = []
    kept = tqdm(
        read_files(source, known.keep),
        desc=f"import {known.name}",
        unit="file",
        disable=not progress,
    )
    for name, content in kept:
        try:
            item = known.describe(name, content)
        except ValueError as e:
            raise DataCorrupt(f"{name} in {source} is damaged: {e}; get it again") from None
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files[name] = (len(content), sha256(content).hexdigest())
        items += [item] if item is not None else []
    if not items:
        raise DataCorrupt(f"{source} holds nothing of {known.name} ({known.title})")
    manifest = _about(known) | {
        "splits": summarize(items),
        "files": dict(sorted(files.items())),
    }
    write_manifest(target, manifest)
    return manifest


def differences(known: DataSet, parts: Mapping[str, Part]) -> tuple[str, ...]:
    """Return how the splits of a copy differ from those of the release, one sentence each."""
    found: list[str] = []
    if not known.parts:
        return ()
    for split in sorted(set(known.parts) | (set(parts) - known.extras)):
        here, there = parts.get(split, Part(0, "none")), known.parts.get(split, Part(0, "none"))
        if here != there:
            found.append(
                f"{split} has {here.num_items} items (digest {here.digest}), the release has "
                f"{there.num_items} (digest {there.digest})"
            )
    return tuple(found)


def status() -> list[Status]:
    """Return what there is of each data set; only manifests are read, see `verify`."""
    return [_status(data_set(name)) for name in sorted(DATA_SETS)]


def _status(known: DataSet) -> Status:
    folder = home() / known.name
    if not (folder / MANIFEST).exists():
        return Status(known.name, known.title, None, {}, ())
    try:
        parts = parts_of(read_manifest(folder))
    except DataCorrupt as e:
        return Status(known.name, known.title, folder, {}, (), str(e))
    return Status(known.name, known.title, folder, parts, differences(known, parts))


def verify(name: str, *, progress: bool = True) -> Status:
    """Check every file of a data set against its checksum.

    Raises:
        DataMissing: The data set is not here.
        DataCorrupt: Files are missing or changed; the message names the first few.
    """
    folder = find(name)
    files = read_manifest(folder)["files"]
    bad = []
    for path, (size, digest) in tqdm(files.items(), desc=f"verify {name}", disable=not progress):
        file = folder / path
        if not file.is_file():
            bad.append(f"{path} is missing")
        elif file.stat().st_size != size or digest_file(file) != digest:
            bad.append(f"{path} was changed")
    if bad:
        more = f" and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise DataCorrupt(
            f"the data set {name} in {folder} is damaged: {'; '.join(bad[:_SHOWN])}{more}. Import "
            f"it again: {command(name)}"
        )
    return _status(data_set(name))
