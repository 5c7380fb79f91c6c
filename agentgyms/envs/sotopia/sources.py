"""Sources of encounters: this package's generator, or SOTOPIA's profiles."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import TaskSet
from agentgyms.data import datasets
from agentgyms.data.users_files import FileState, files_below, state_of
from agentgyms.envs.sotopia.official import encounters
from agentgyms.envs.sotopia.official.files import TABLES
from agentgyms.envs.sotopia.profiles import Encounter


class _Files(NamedTuple):
    """A folder or archive, with the state of each file that is read."""

    path: Path
    states: tuple[FileState, ...]


class EncounterSource(NamedTuple):
    """The encounters of a split; snapshots and recordings store its version."""

    version: str
    load: Callable[[], TaskSet]
    encounter: Callable[[str], Encounter]


def open_source(
    source: str, split: str, data_path: str | os.PathLike[str] | None
) -> EncounterSource:
    """Open a source's encounters; `data_path` has profiles in place of the imported ones."""
    if source == "generated":
        from agentgyms.envs.sotopia.generated import scenarios

        return EncounterSource(
            f"generated-{scenarios.VERSION}",
            lambda: _generated_tasks(split),
            scenarios.encounter,
        )
    profiles = _read(_files((Path(data_path) if data_path else datasets.find("sotopia")).resolve()))
    tasks = profiles.tasks(split)
    part = profiles.parts["all" if split == "sample" else split]
    return EncounterSource(
        f"official-{part.digest}", lambda: TaskSet(split, tasks), profiles.encounter
    )


def filter_families(opened: EncounterSource, families: Any) -> EncounterSource:
    """Return the source restricted to a list of families, which the split must have."""
    tasks = opened.load()
    known = list(tasks.families())
    listed = isinstance(families, Sequence) and not isinstance(families, str)
    if not listed or not families or any(family not in known for family in families):
        raise BadOption(f"families must be a list of some of {', '.join(known)}, got {families!r}")
    found = [task for task in map(tasks.find, tasks) if task.family in families]
    return opened._replace(load=lambda: TaskSet(tasks.split, found))


@lru_cache(maxsize=8)
def _generated_tasks(split: str) -> TaskSet:
    from agentgyms.envs.sotopia.generated import scenarios

    return TaskSet(split, scenarios.task_ids(split))


@lru_cache(maxsize=4)
def _read(files: _Files) -> encounters.Official:
    """Return the profiles of a path; cached and shared until a file changes."""
    return encounters.read(files.path)


def _files(path: Path) -> _Files:
    found = files_below(path) if path.is_dir() else filter(Path.is_file, [path])
    return _Files(
        path,
        tuple(
            state_of(file)
            for file in found
            if file == path or any(table.has(file.as_posix()) for table in TABLES)
        ),
    )
