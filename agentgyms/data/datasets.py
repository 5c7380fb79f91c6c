"""Data sets of benchmarks: finds, downloads, imports and verifies them.

Nothing is downloaded without a command. A data set is a folder below `home()` with its files and a
manifest with the size and sha256 of each.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import platformdirs

from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.data.archives import read_files
from agentgyms.data.folders import recover_folder, replace_folder, resumable_folder
from agentgyms.data.manifests import (
    MANIFEST,
    Item,
    Part,
    digest_file,
    parts_of,
    read_manifest,
    summarize,
    write_manifest,
)
from agentgyms.data.progress_bar import ProgressBar

DATA_SETS: Final = {
    "appworld": "agentgyms.envs.appworld.engine.sources:DATA_SET",
    "alfworld": "agentgyms.envs.alfworld.official.dataset:DATA_SET",
    "sotopia": "agentgyms.envs.sotopia.official.dataset:DATA_SET",
    "webshop": "agentgyms.envs.webshop.build.dataset:DATA_SET",
}
"""Every data set by name, with the module attribute that describes it."""

_MAX_LISTED: Final = 5


@dataclass(frozen=True, slots=True)
class DataSet:
    """The description of a data set.

    `keep` maps a file's name in a folder or archive to its imported name, or to None to skip it.
    `describe` maps imported name and content to an item or None, and raises ValueError for damage.
    Or `build` writes the data set of a folder or archive to a folder, with or without progress
    bars, and returns its manifest.
    """

    name: str
    title: str
    licence: str
    url: str  # or ""; the variable `AGENTGYMS_<NAME>_DATA_URL` overrides it
    keep: Callable[[str], str | None] | None = None
    describe: Callable[[str, bytes], Item | None] | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)  # of the release, if there is one
    extras: frozenset[str] = frozenset()  # splits that may exist beside those
    size: int | None = None  # of the download, in bytes
    sha256: str | None = None  # of the download
    build: Callable[[Path, Path, bool], dict[str, Any]] | None = None
    by_hand: str = ""  # how to get the files if there is no url
    absent: str = ""  # what a folder without any of the files lacks, and what has it
    command: str = ""  # gets and imports them, where it is none of `agentgyms data`


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a data set on this machine."""

    name: str
    title: str
    folder: Path | None  # None if it is not on this machine
    parts: Mapping[str, Part]
    differences: tuple[str, ...]  # from the release, one sentence each
    damage: str = ""  # why it cannot be used


def home() -> Path:
    """Return `AGENTGYMS_DATA`, else the user's cache folder; `BadOption` if it names a file."""
    chosen = os.environ.get("AGENTGYMS_DATA")
    if not chosen:
        return Path(platformdirs.user_cache_dir("agentgyms"))
    folder = Path(chosen).expanduser()
    if folder.exists() and not folder.is_dir():
        raise BadOption(f"AGENTGYMS_DATA={chosen} is no folder: expected one, or a new name")
    return folder


def check_path(data_path: Any) -> str | None:
    """Return an environment's argument `data_path` as a string."""
    if data_path is None:
        return None
    if not isinstance(data_path, str | os.PathLike) or not isinstance(os.fspath(data_path), str):
        raise BadOption(
            f"data_path must be a path, as a string or a pathlib.Path, got {data_path!r:.60}"
        )
    return os.fspath(data_path)


def data_set(name: str) -> DataSet:
    """Return the description of a data set; raise `BadOption` for an unknown name."""
    if name not in DATA_SETS:
        raise BadOption(f"no data set {name!r}: expected one of {', '.join(sorted(DATA_SETS))}")
    module, _, attribute = DATA_SETS[name].partition(":")
    described: DataSet = getattr(importlib.import_module(module), attribute)
    return described


def find(name: str) -> Path:
    """Return the folder of a data set; a `DataMissing` names the commands that get it."""
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
    """Return the command that gets a data set; a PATH in it is that of its files."""
    known = data_set(name)
    usual = f"fetch {name}" if known.url else f"import {name} PATH"
    return known.command or f"agentgyms data {usual}"


def fetch(name: str, *, allow_other: bool = False, progress: bool = True) -> Path:
    """Download and import a data set, and return its folder; an interrupted download is resumed.

    `allow_other` accepts contents that are not the release's. Raises `DataMissing` if the download
    failed, `DataCorrupt` if it is not the data set; nothing was changed then.
    """
    known = data_set(name)
    variable = f"AGENTGYMS_{name.upper()}_DATA_URL"
    url = os.environ.get(variable, known.url)
    if not url:
        raise DataMissing(
            f"{name} has no address to download: {known.by_hand}; then run `agentgyms data import "
            f"{name} PATH`. If there is an archive of them somewhere, set {variable} to its address"
        )
    from agentgyms.data.download import download  # httpx2 takes 0.1 s to import

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
    """Import a data set from a folder, at any depth, a .zip or a .tar; return its folder.

    `allow_other` accepts contents that are not the release's; an older copy is replaced. Raises
    `DataMissing` if `path` does not exist, `DataCorrupt` (nothing was changed) if a file is damaged
    or not the release's, `EnvUnavailable` if another process imports this data set now.
    """
    known, source, target = data_set(name), Path(path), home() / name
    home().mkdir(parents=True, exist_ok=True)
    with resumable_folder(target.with_name(f".{name}-unfinished")) as work:
        recover_folder(work, target)
        manifest = _make(known, source, work / "new", progress=progress)
        if not allow_other and (different := differences(known, manifest["splits"])):
            raise DataCorrupt(
                f"{source} is not the release of {known.name}: {'; '.join(different)}. Get the "
                "release, or accept this one with --allow-other"
            )
        header = {"name": known.name, "title": known.title, "licence": known.licence}
        write_manifest(work / "new", header | manifest)
        replace_folder(work, target)
    return target


def _make(known: DataSet, source: Path, target: Path, *, progress: bool) -> dict[str, Any]:
    if target.exists():  # of an import that was killed
        shutil.rmtree(target)
    try:
        if known.build is not None:
            return known.build(source, target, progress)
        assert known.keep is not None
        assert known.describe is not None
        files: dict[str, tuple[int, str]] = {}
        items: list[Item] = []
        progress_bar = ProgressBar(
            read_files(source, known.keep),
            desc=f"import {known.name}",
            unit="file",
            disable=not progress,
        )
        for name, content in progress_bar:
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
            what = f"{source} has no file of {known.name} ({known.title})"
            raise DataCorrupt(f"{what}: {known.absent}" if known.absent else what)
        return {"splits": summarize(items), "files": dict(sorted(files.items()))}
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def differences(known: DataSet, parts: Mapping[str, Part]) -> tuple[str, ...]:
    """Return the differences between a copy's splits and the release, one sentence each."""
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
    """Return the status of each data set; it reads only manifests, see `verify`."""
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
    """Check every checksum; raise `DataMissing`, or `DataCorrupt` with a few of the bad files."""
    folder = find(name)
    files = read_manifest(folder)["files"]
    bad = []
    shown = ProgressBar(files.items(), desc=f"verify {name}", unit="file", disable=not progress)
    for path, (size, digest) in shown:
        file = folder / path
        if not file.is_file():
            bad.append(f"{path} is missing")
        elif file.stat().st_size != size or digest_file(file) != digest:
            bad.append(f"{path} was changed")
    if bad:
        more = f" and {len(bad) - _MAX_LISTED} more" if len(bad) > _MAX_LISTED else ""
        raise DataCorrupt(
            f"the data set {name} in {folder} is damaged: {'; '.join(bad[:_MAX_LISTED])}{more}. "
            f"Import it again: {command(name)}"
        )
    return _status(data_set(name))
