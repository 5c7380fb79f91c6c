"""Sources of games: this package's generator, or a folder of official game files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.data import datasets
from agentgyms.data.manifests import MANIFEST, read_manifest
from agentgyms.data.users_files import FileState, is_litter, parse_json, read_bytes, state_of
from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.game import Game
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.layouts import SIZES
from agentgyms.envs.alfworld.generated.writer import game_fields
from agentgyms.envs.alfworld.official.dataset import ABSENT, SPLITS, keep
from agentgyms.envs.alfworld.official.gamefile import GAME_FILE, TASK_TYPES, read_game
from agentgyms.envs.alfworld.problem import FAMILIES

_SAMPLES: Final = 2
_CACHED_GAMES: Final = 256
_CACHED_LISTS: Final = 16


class Source(Hashable, Protocol):
    """A source of games; equal sources share the cache of games."""

    def version(self, split: str) -> str:
        """Return the version of a split's contents; snapshots and recordings store it."""

    def tasks(self, split: str) -> list[Task]:
        """Return the tasks of a split."""

    def game(self, split: str, task_id: str) -> Game:
        """Return a game, uncached; see `load_game`."""

    def fields(self, split: str, task_id: str) -> dict[str, Any]:
        """Return the content of a game's file, for the official engine."""


@lru_cache(maxsize=_CACHED_GAMES)
def load_game(source: Source, split: str, task_id: str) -> Game:
    """Return a game; cached and shared."""
    return source.game(split, task_id)


@lru_cache(maxsize=_CACHED_LISTS)
def list_tasks(source: Source, split: str, families: frozenset[str]) -> TaskSet:
    """Return the tasks of some families of a split; cached and shared."""
    tasks = source.tasks(split)
    return TaskSet(split, [task for task in tasks if task.family in families])


@dataclass(frozen=True, slots=True)
class Generated:
    """Tasks of the generator, in `small` or `large` rooms."""

    rooms: str

    def version(self, split: str) -> str:
        """Return the generator's version."""
        return f"generated-{generator.VERSION}"

    def tasks(self, split: str) -> list[Task]:
        """Return the tasks of a split; nothing is generated yet."""
        return generator.list_tasks(self.rooms, split)

    def game(self, split: str, task_id: str) -> Game:
        """Generate a game."""
        return build_game(generator.generate(task_id), task_id)

    def fields(self, split: str, task_id: str) -> dict[str, Any]:
        """Return the content of the game's file as `writer` writes it."""
        return game_fields(generator.generate(task_id), task_id)


@dataclass(frozen=True, slots=True)
class Official:
    """Game files in the folders `<split>/<task>/<trial>`; task ids are `<task>/<trial>`.

    Two sources are equal if, as `stamp` says, nothing changed in the folder between their openings.
    """

    folder: Path
    stamp: str
    splits: Mapping[str, _Index] = field(compare=False, repr=False)

    @classmethod
    def open(cls, folder: Path) -> Official:
        """Return the games of a folder as it is now; an unchanged one is not listed again."""
        if (folder / MANIFEST).exists():
            return _imported(folder, state_of(folder / MANIFEST))
        return _found(folder, _scan(folder))

    def version(self, split: str) -> str:
        """Return a digest of the split's task ids, each with the size of its game's file in bytes.

        The same files have the same version wherever they are. Files are not read: a change that
        keeps the size is not noticed, see `agentgyms data verify`. `sample` has train's version.
        """
        return f"official-{self._index(split).digest}"

    def tasks(self, split: str) -> list[Task]:
        """Return the tasks of a split; `sample` are the first two of each family in train."""
        tasks = [_task(task_id) for task_id in self._index(split).ids]
        if split != "sample":
            return tasks
        return [
            task
            for family in FAMILIES
            for task in [task for task in tasks if task.family == family][:_SAMPLES]
        ]

    def path(self, split: str, task_id: str) -> Path:
        """Return the file of a game."""
        return self.folder / _real(split) / task_id / GAME_FILE

    def game(self, split: str, task_id: str) -> Game:
        """Read a game."""
        return read_game(self.path(split, task_id), task_id)

    def fields(self, split: str, task_id: str) -> dict[str, Any]:
        """Return the content of the file."""
        fields: dict[str, Any] = parse_json(read_bytes(self.path(split, task_id)))
        return fields

    def _index(self, split: str) -> _Index:
        index = self.splits.get(_real(split))
        if index is None:
            raise DataMissing(
                f"{self.folder} has no games of split {_real(split)!r} in the folder "
                f"{_real(split)}: {ABSENT}"
            )
        return index


def _real(split: str) -> str:
    return "train" if split == "sample" else split


def _task(task_id: str) -> Task:
    kind = task_id.partition("-")[0]
    if kind not in TASK_TYPES:
        raise DataCorrupt(
            f"the task folder {task_id} begins with none of ALFWorld's task types: "
            f"{', '.join(TASK_TYPES)}"
        )
    return Task(task_id, TASK_TYPES[kind])


class _Index:
    """The task ids of a split, sorted, and a digest of them and of their files' sizes."""

    __slots__ = ("digest", "ids")

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.ids = sorted(sizes)
        lines = "".join(f"{task_id} {sizes[task_id]}\n" for task_id in self.ids)
        self.digest = sha256(lines.encode()).hexdigest()[:16]


@lru_cache(maxsize=8)
def _imported(folder: Path, manifest: FileState) -> Official:
    """Return the games of an imported data set, by its manifest; cached until that changes."""
    sizes: dict[str, dict[str, int]] = {}
    for name, (size, _) in read_manifest(folder)["files"].items():
        if keep(name) != name:
            raise DataCorrupt(f"the manifest of {folder} lists {name!r}: import the games again")
        split, task, trial, _ = name.split("/")
        if _is_played(task):
            sizes.setdefault(split, {})[f"{task}/{trial}"] = size
    return _official(folder, sizes, manifest)


class _FoundGame(NamedTuple):
    split: str
    task_id: str
    size: int
    changed: tuple[int, int]  # its times in ns


def _scan(folder: Path) -> tuple[_FoundGame, ...]:
    found = []
    for split in SPLITS:
        for task in _subfolders(folder / split):
            for trial in _subfolders(task) if _is_played(task.name) else ():
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(f"{trial.path}/{GAME_FILE}")  # noqa: PTH116  for each game
                    times = status.st_mtime_ns, status.st_ctime_ns
                    task_id = f"{task.name}/{trial.name}"
                    found.append(_FoundGame(split, task_id, status.st_size, times))
    return tuple(sorted(found))


@lru_cache(maxsize=8)
def _found(folder: Path, games: tuple[_FoundGame, ...]) -> Official:
    """Return the games that were found in a folder; cached until one changes."""
    sizes: dict[str, dict[str, int]] = {}
    for game in games:
        sizes.setdefault(game.split, {})[game.task_id] = game.size
    return _official(folder, sizes, games)


def _official(folder: Path, sizes: Mapping[str, Mapping[str, int]], state: object) -> Official:
    stamp = sha256(repr(state).encode()).hexdigest()
    return Official(folder, stamp, {split: _Index(found) for split, found in sizes.items()})


def _is_played(task: str) -> bool:
    """Return whether ALFWorld has a task: none with movable receptacles or sliced objects."""
    return "movable" not in task and "Sliced" not in task


def _subfolders(folder: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not is_litter(entry.name) and entry.is_dir()]
    except FileNotFoundError:
        return []


def open_source(source: str, data_path: str | None, rooms: str) -> Source:
    """Return the source that an environment's arguments name."""
    if source not in ("generated", "official"):
        raise BadOption(f"source {source!r} is unknown: expected 'generated' or 'official'")
    if rooms not in tuple(SIZES):  # a tuple, in which anything can be looked for
        raise BadOption(f"rooms {rooms!r} is unknown: expected one of {', '.join(SIZES)}")
    if source == "generated":
        if data_path is not None:
            raise BadOption("data_path names official games: add source='official' or leave it out")
        return Generated(rooms)
    return Official.open(
        datasets.find("alfworld") if data_path is None else _root(Path(data_path).expanduser())
    )


def _root(path: Path) -> Path:
    """Return the folder with the splits: the given one or its `json_2.1.x`."""
    for folder in (path, *sorted(path.glob("json_*"))):
        if any((folder / split).is_dir() for split in SPLITS):
            return folder.resolve()
    raise DataMissing(
        f"data_path {path} holds none of the folders {', '.join(SPLITS)}: give the folder that has "
        "them, or leave data_path out and run `agentgyms data fetch alfworld`"
    )
