"""Where rooms come from: this package's generator, a peer's, or level files."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

from agentgyms.download import digest_file
from agentgyms.errors import BadOption, DataMissing
from agentgyms.sokoban import generator, peer_rooms
from agentgyms.sokoban.engine import Room
from agentgyms.sokoban.generator import Made, Recipe
from agentgyms.sokoban.levels import Drawing, read_drawings
from agentgyms.sokoban.peer_rooms import NoRoom, Peer
from agentgyms.tasks import Task, TaskSet

SPLITS: Final = (*generator.SPLITS, "sample")
SAMPLES: Final = 12

_TRAIN_SEEDS: Final = range(2**16 - 1)
_OTHER_SEEDS: Final = range(2**16, 2**32)
"""verl-agent trains on the first and validates on the others."""
_LISTED: Final = 1000
_SEEDS_TRIED: Final = 1000
_CACHED_ROOMS: Final = 512  # a kB each, and quickly read anew


class Source(Hashable, Protocol):
    """A place that rooms come from; equal sources share what they made."""

    def version(self, split: str) -> str:
        """Return a name for the rooms of a split; snapshots and recordings carry it."""
        ...

    def tasks(self, split: str) -> TaskSet:
        """Return the tasks of a split."""
        ...

    def room(self, split: str, task_id: str) -> Room:
        """Return the room of a task, made anew; see `load_room`."""
        ...


@lru_cache(maxsize=_CACHED_ROOMS)
def load_room(source: Source, split: str, task_id: str) -> Room:
    """Return a room; all environments of the process that play in it share one."""
    return source.room(split, task_id)


@lru_cache(maxsize=16)
def list_tasks(source: Source, split: str) -> TaskSet:
    """Return the tasks of a split; environments share them too."""
    return source.tasks(split)


@dataclass(frozen=True, slots=True)
class Generated:
    """Rooms of this package's generator.

    Attributes:
        recipe: What they are like.
        rooms: How many there are to train in; valid and test have a tenth of them each.
        fewer: Whether fewer will do, where there are no more.
    """

    recipe: Recipe
    rooms: int
    fewer: bool

    def version(self, split: str) -> str:
        """Return the generator's version."""
        return f"generated-{generator.VERSION}"

    def tasks(self, split: str) -> TaskSet:
        """Return the tasks; their families are the lengths of the shortest solutions, in fives."""
        prefix = f"{'train' if split == 'sample' else split}/{self.recipe.short_name}"
        return TaskSet(
            split,
            [
                Task(f"{prefix}-{number:05d}", family_of(made.moves))
                for number, made in enumerate(self._made(split))
            ],
        )

    def room(self, split: str, task_id: str) -> Room:
        """Return the room of this number."""
        return self._made(split)[int(task_id.rpartition("-")[2])].room()

    def _made(self, split: str) -> list[Made]:
        """Return the rooms of a split; `sample` are the first of train."""
        if split == "sample":
            return make_rooms(self.recipe, "train", min(SAMPLES, self.rooms), self.fewer)
        count = self.rooms if split == "train" else max(1, self.rooms // 10)
        return make_rooms(self.recipe, split, count, self.fewer)


def make_rooms(recipe: Recipe, split: str, count: int, fewer: bool) -> list[Made]:
    """Return generated rooms, made once per process however many threads ask for them."""
    with _MAKING[recipe, split, count]:
        return _made(recipe, split, count, fewer)


_MAKING: Final = defaultdict[tuple[Recipe, str, int], Lock](Lock)


@lru_cache(maxsize=16)
def _made(recipe: Recipe, split: str, count: int, fewer: bool) -> list[Made]:
    return generator.make_rooms(recipe, split, count, fewer=fewer)


def family_of(moves: int) -> str:
    """Return the family of a room by the length of its shortest solution: `01-05`, `06-10`, ..."""
    low = (moves - 1) // 5 * 5 + 1
    return f"{low:02d}-{low + 4:02d}"


@dataclass(frozen=True, slots=True)
class Peers:
    """The rooms that a peer makes from seeds; task ids are `seed-<n>`.

    Attributes:
        shape: Rows and columns.
        boxes: Number of boxes.
        peer: Whose generator.
    """

    shape: tuple[int, int]
    boxes: int
    peer: Peer

    def version(self, split: str) -> str:
        """Return a fixed name: the rooms are what the peers make."""
        return "peer-rooms-1"

    def tasks(self, split: str) -> TaskSet:
        """Return verl-agent's seeds of the split, nothing generated yet."""
        family = f"{self.boxes}-box" if self.boxes == 1 else f"{self.boxes}-boxes"
        return SeedSet(split, family)

    def room(self, split: str, task_id: str) -> Room:
        """Return the seed's room, or where the peer makes none, the next seed's that has one.

        Raises:
            BadOption: Many seeds in a row have none.
        """
        first = int(task_id.rpartition("-")[2])
        for seed in range(first, first + _SEEDS_TRIED):
            with contextlib.suppress(NoRoom):
                return peer_rooms.generate(self.shape, self.boxes, seed % 2**32, self.peer)
        height, width = self.shape
        raise BadOption(
            f"the peer makes no room of {height} x {width} cells with boxes={self.boxes} from "
            f"{_SEEDS_TRIED} seeds, {first} and after: take a greater size, fewer boxes or a "
            "greater search_depth"
        )


class SeedSet(TaskSet):
    """The seeds of a split: those listed, and in valid and test any other one from 2**16 on."""

    def __init__(self, split: str, family: str) -> None:
        """List the seeds of train, or the first thousand of valid or test."""
        self._family = family
        self.seeds = _TRAIN_SEEDS if split in ("train", "sample") else _OTHER_SEEDS
        listed = self.seeds[_LISTED:] if split == "test" else self.seeds
        count = {"train": len(listed), "sample": SAMPLES}.get(split, _LISTED)
        super().__init__(split, [Task(self.task_id(seed), family) for seed in listed[:count]])

    def task_id(self, seed: int) -> str:
        """Return the id of a seed's room."""
        return f"seed-{seed}"

    def __contains__(self, task_id: object) -> bool:
        """Return whether the split plays this id."""
        if super().__contains__(task_id) or not isinstance(task_id, str):
            return super().__contains__(task_id)
        seed = task_id.removeprefix("seed-")
        known = seed.isascii() and seed.isdigit() and int(seed[:11]) in self.seeds
        return known and task_id == self.task_id(int(seed))

    def find(self, task_id: str) -> Task:
        """Return the task of this id, listed or not.

        Raises:
            UnknownTask: It is of no seed of the split.
        """
        return Task(task_id, self._family) if task_id in self else super().find(task_id)


@dataclass(frozen=True, slots=True)
class Levels:
    """Level files: a folder with the folders `train`, `valid` and `test`, or files alone, for test.

    Task ids are `<split>/<file>/<number in the file>`.

    Attributes:
        path: The folder, or a single file.
        changed: When the newest file was changed, in nanoseconds; other files make another source.
    """

    path: Path
    changed: int

    def version(self, split: str) -> str:
        """Return a digest of the files' names and contents."""
        lines = [f"{file.name} {_digest(file, self.changed)}\n" for file in self._files(split)]
        return f"levels-{sha256(''.join(lines).encode()).hexdigest()[:16]}"

    def tasks(self, split: str) -> TaskSet:
        """Return the levels of a split; their family is the folder's or file's name."""
        family, place = self.path.stem, self._place(split)
        tasks = [
            Task(f"{place}/{file.stem}/{number:04d}", family)
            for file in self._files(split)
            for number in range(len(_drawings(file, self.changed)))
        ]
        return TaskSet(split, tasks[:SAMPLES] if split == "sample" else tasks)

    def room(self, split: str, task_id: str) -> Room:
        """Return the room of a level."""
        _, stem, number = task_id.split("/")
        file = next(file for file in self._files(split) if file.stem == stem)
        return _drawings(file, self.changed)[int(number)].room()

    def _place(self, split: str) -> str:
        """Return the split itself; `sample` is the beginning of train, or of test without train."""
        if split != "sample":
            return split
        return "train" if (self.path / "train").is_dir() else "test"

    def _files(self, split: str) -> list[Path]:
        place = self._place(split)
        folder = self.path / place
        if place == "test" and not folder.is_dir():
            folder = self.path
        files = [file for file in [folder, *sorted(folder.glob("*.txt"))] if file.is_file()]
        if not files:
            raise DataMissing(
                f"there are no level files for split {split!r} in {self.path}: expected .txt files "
                f"in its folder {place!r}; files that lie in no such folder are of split 'test'"
            )
        return files


@lru_cache(maxsize=4096)
def _digest(file: Path, _changed: int) -> str:
    return digest_file(file)


@lru_cache(maxsize=64)
def _drawings(file: Path, _changed: int) -> list[Drawing]:
    return read_drawings(file)
