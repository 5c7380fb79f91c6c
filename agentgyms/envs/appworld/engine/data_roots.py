"""Divides a data root of the real engine into a part without and a part with ground truth.

Engine workers read `world`, a root without ground truth. Evaluators read `truth`, which has the
ground truth and links to `world` for everything else.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.progress_bar import ProgressBar
from agentgyms.data.users_files import files_below, parse_json, read_text

SPLITS: Final = ("train", "dev", "test_normal", "test_challenge")
"""The splits of AppWorld, in the benchmark's order."""

_SHARED_FILES: Final = ("base_dbs", "api_docs", "datasets", "version.txt")
_TASK_FILES: Final = ("specs.json", "dbs")
"""The files that a world needs of all tasks, and of one task; only these are in `world`."""


class Roots(NamedTuple):
    """A divided data root: `world` for engine workers, without ground truth, and `truth`."""

    world: Path
    truth: Path

    @property
    def version(self) -> str:
        """The version of the data, "" if it has none."""
        file = self.world / "data" / "version.txt"
        return _text(file).strip() if file.is_file() else ""

    def tasks(self, split: str) -> list[str]:
        """Return the task ids of a split, in the benchmark's order."""
        file = self.world / "data" / "datasets" / f"{split}.txt"
        if not file.is_file():
            raise DataMissing(f"AppWorld's data in {self.world} has no split {split!r}: no {file}")
        lines = _text(file).split()
        return [line.partition(":")[0] for line in lines]

    def specs(self, task_id: str) -> dict[str, Any]:
        """Return the instruction, supervisor and date of a task; `DataMissing` if it is absent."""
        return dict(_read(self.world / "data" / "tasks" / task_id / "specs.json"))

    def ground_truth(self, task_id: str, name: str) -> Any:
        """Return the content of a file of a task's ground truth, None if it is missing."""
        file = self.truth / "data" / "tasks" / task_id / "ground_truth" / f"{name}.json"
        return _read(file) if file.is_file() else None


def _text(file: Path) -> str:
    try:
        return read_text(file)
    except FileNotFoundError:
        raise DataMissing(f"AppWorld's data has no {file}") from None
    except UnicodeError as e:
        raise DataCorrupt(f"{file} is damaged: {e}") from None


def _read(file: Path) -> Any:
    try:
        return parse_json(_text(file))
    except ValueError as e:
        raise DataCorrupt(f"{file} is damaged: {e}") from None


def divided(folder: Path) -> Roots | None:
    """Return the two roots of a folder that `divide` wrote, None for another folder."""
    roots = Roots(folder / "world", folder / "truth")
    return roots if (roots.world / "data").is_dir() and (roots.truth / "data").is_dir() else None


def find_data(folder: Path) -> Path:
    """Return the folder of AppWorld's data: the given folder, or its `data`."""
    for candidate in (folder, folder / "data"):
        if all((candidate / name).is_dir() for name in ("base_dbs", "api_docs", "datasets")):
            return candidate
    raise DataMissing(
        f"{folder} holds no data of AppWorld: expected a folder `data` with base_dbs, api_docs, "
        "datasets and tasks, as `appworld download data` makes it"
    )


def files_of(roots: Path) -> list[str]:
    """Return the relative names of the files that `divide` wrote in a folder, sorted; no links."""
    found = []
    for parent, _, names in os.walk(roots):
        files = [file for name in names if not (file := Path(parent, name)).is_symlink()]
        found += [file.relative_to(roots).as_posix() for file in files]
    return sorted(found)


def divide(source: Path, target: Path, *, link: bool = False, progress: bool = False) -> Roots:
    """Copy or hard link AppWorld's data to two roots; an interrupted copy resumes."""
    found = find_data(source)
    roots = Roots(target / "world", target / "truth")
    files = [file.relative_to(found).as_posix() for file in files_below(found)]
    for name in ProgressBar(files, desc="AppWorld's data", unit="file", disable=not progress):
        root = roots.world if _is_for_world(PurePosixPath(name)) else roots.truth
        _copy_or_link(found / name, root / "data" / name, link=link)
    _link_shared(roots)
    return roots


def _is_for_world(name: PurePosixPath) -> bool:
    if name.parts[0] != "tasks":
        return name.parts[0] in _SHARED_FILES
    return len(name.parts) > 2 and name.parts[2] in _TASK_FILES


def _copy_or_link(source: Path, target: Path, *, link: bool) -> None:
    if target.exists() and target.stat().st_size == source.stat().st_size:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        try:
            target.hardlink_to(source.resolve())  # else it would be of a link
        except OSError:  # another file system, or one without hard links
            pass
        else:
            return
    fresh = target.with_name(f".{target.name}.part")
    shutil.copyfile(source, fresh)
    fresh.rename(target)


def _link_shared(roots: Roots) -> None:
    """Link the other files into the root with ground truth."""
    truth_data, world_data = roots.truth / "data", roots.world / "data"
    truth_data.mkdir(parents=True, exist_ok=True)
    links = {truth_data / name: world_data / name for name in _SHARED_FILES}
    for task in sorted((world_data / "tasks").iterdir()):
        folder = truth_data / "tasks" / task.name
        folder.mkdir(parents=True, exist_ok=True)
        links |= {folder / name: task / name for name in _TASK_FILES}
    for link, target in links.items():
        if target.exists() and not link.is_symlink():
            link.symlink_to(os.path.relpath(target, link.parent))
