"""Where encounters come from: this package's generator, or SOTOPIA's own profiles."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from agentgyms import data
from agentgyms.errors import BadOption
from agentgyms.sotopia import official
from agentgyms.sotopia.official_files import TABLES
from agentgyms.sotopia.profiles import Encounter
from agentgyms.tasks import TaskSet


class _Files(NamedTuple):
    """A folder or archive, and the name, size and time of change of each file that is read."""

    path: Path
    stamps: tuple[tuple[str, int, int], ...]


class Opened(NamedTuple):
    """The encounters of a split.

    Attributes:
        version: Of what is in the split; snapshots and recordings carry it.
        load: Returns its tasks.
        encounter: Returns one by the id of its task.
    """

    version: str
    load: Callable[[], TaskSet]
    encounter: Callable[[str], Encounter]


def open_source(source: str, split: str, data_path: str | os.PathLike[str] | None) -> Opened:
    """Return the encounters that an environment's arguments name.

    Args:
        source: `"generated"` or `"official"`.
        split: One that the source has.
        data_path: A folder or archive with SOTOPIA's profiles, in place of the imported ones.

    Raises:
        DataMissing: The profiles are not there, or have nothing of the split.
        DataCorrupt: They are damaged.
    """
    if source == "generated":
        return _generated(split)
    return _official(split, Path(data_path) if data_path else data.find("sotopia"))


def restricted(opened: Opened, families: Any) -> Opened:
    """Return the encounters of some families, a list of names.

    Raises:
        BadOption: It is no such list, or has a family that the split lacks.
    """
    tasks = opened.load()
    known = list(tasks.families())
    listed = isinstance(families, Sequence) and not isinstance(families, str)
    if not listed or not families or any(family not in known for family in families):
        raise BadOption(f"families must be a list of some of {', '.join(known)}, got {families!r}")
    found = [task for task in map(tasks.find, tasks) if task.family in families]
    return opened._replace(load=lambda: TaskSet(tasks.split, found))


def _generated(split: str) -> Opened:
    from agentgyms.sotopia.generated import scenarios

    return Opened(
        f"generated-{scenarios.VERSION}",
        lambda: _generated_tasks(split),
        scenarios.encounter,
    )


@lru_cache(maxsize=8)
def _generated_tasks(split: str) -> TaskSet:
    from agentgyms.sotopia.generated import scenarios

    return TaskSet(split, scenarios.task_ids(split))


def _official(split: str, path: Path) -> Opened:
    profiles = _read(_files(path.resolve()))
    tasks = profiles.tasks(split)
    part = profiles.parts["all" if split == "sample" else split]
    return Opened(f"official-{part.digest}", lambda: TaskSet(split, tasks), profiles.encounter)


@lru_cache(maxsize=4)
def _read(files: _Files) -> official.Official:
    """Return the profiles of a path; environments share them while the files stay as they are."""
    return official.read(files.path)


def _files(path: Path) -> _Files:
    found = [path] if path.is_file() else filter(Path.is_file, sorted(path.rglob("*.json*")))
    return _Files(
        path,
        tuple(
            (str(file), status.st_size, status.st_mtime_ns)
            for file in found
            if file == path or any(table.has(file.as_posix()) for table in TABLES)
            for status in [file.stat()]
        ),
    )
