"""Generates rooms: solvable, all different, and the same on every machine.

A random walk carves a room, targets are sampled, and a retrograde search from the solved states
finds the solvable states, for many rooms at once. One of those with a shortest solution of the
wanted length becomes the start. Random numbers depend on names alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.deadlines import check_time
from agentgyms.core.errors import BadOption
from agentgyms.data.progress_bar import ProgressBar
from agentgyms.envs.sokoban import retrograde, reverse_starts
from agentgyms.envs.sokoban.engine import BOX, FLOOR, PLAYER, TARGET, WALL, Room, room_of_bytes
from agentgyms.envs.sokoban.retrograde import Starts, boards_for
from agentgyms.envs.sokoban.symmetry import canonical

VERSION: Final = 2
SPLITS: Final = ("train", "valid", "test")

_SHARES: Final = {"train": 10, "valid": 1, "test": 1}
"""Shares of the floor plans in each split, in twelfths."""
_SPLIT_OF_RESIDUE: Final = [split for split, share in _SHARES.items() for _ in range(share)]
_EPSILON: Final = 1e-9
_TURN_PROBABILITY: Final = 0.35
_MAX_BATCH: Final = 2048
_MIN_BATCH: Final = 4
_MAX_TABLE_SIZE: Final = 1 << 22
"""Maximum table entries of a batch; if one room needs more, random reverse play is used."""
_MIN_NEW_SHARE: Final = 0.01
_MAX_POOR_BATCHES: Final = 30
"""The search ends after this many batches with less than 1% new rooms."""

Integers = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parameters of rooms; height and width include the outer walls.

    `walls` is the least and greatest share of inner cells that are walls, `moves` the least and
    greatest length of a shortest solution.
    """

    height: int
    width: int
    boxes: int
    walls: tuple[float, float]
    moves: tuple[int, int]

    @property
    def inner(self) -> tuple[int, int]:
        """Rows and columns without the outer walls."""
        return self.height - 2, self.width - 2

    @property
    def num_masks(self) -> int:
        """Number of ways to place the boxes."""
        rows, columns = self.inner
        return math.comb(rows * columns, self.boxes)

    @property
    def table_size(self) -> int:
        """Table entries for the distances of one room's states, up to the maximum length."""
        return self.num_masks * (self.moves[1] + 1)

    @property
    def has_table(self) -> bool:
        """Whether all states of a room are searched; else random reverse play finds the start."""
        return self.table_size <= _MAX_TABLE_SIZE

    @property
    def floor_sizes(self) -> tuple[int, int]:
        """Minimum and maximum number of floor cells; minimum > maximum if no such room exists."""
        cells = self.inner[0] * self.inner[1]
        most_walls, least_walls = (
            math.floor(cells * self.walls[1] + _EPSILON),
            math.ceil(cells * self.walls[0] - _EPSILON),
        )
        return max(cells - most_walls, self.boxes + 2), cells - least_walls

    @property
    def short_name(self) -> str:
        """The size and a short digest of everything else, for task ids."""
        digest = blake2b(self.name.encode(), digest_size=2).hexdigest()
        return f"{self.height}x{self.width}-{self.boxes}-{digest}"

    @property
    def name(self) -> str:
        """All parameters in a few characters."""
        low, high = self.walls
        return (
            f"{self.height}x{self.width}-b{self.boxes}-w{low:g}:{high:g}"
            f"-m{self.moves[0]}:{self.moves[1]}"
        )


class Made(NamedTuple):
    """A room: tiles row by row, a byte each, and the length of its shortest solution."""

    height: int
    tiles: bytes
    moves: int

    def room(self) -> Room:
        """Return the room."""
        width = len(self.tiles) // self.height
        return room_of_bytes(self.height, width, self.tiles)


def make_rooms(
    recipe: Recipe, split: str, count: int, *, fewer: bool = False, progress: bool = True
) -> list[Made]:
    """Return the first `count` rooms of a split, or fewer if `fewer` and new ones become rare.

    Rooms of two splits have different floor plans (walls and targets), and no two rooms of a split
    are equal up to rotation, reflection and translation. Raises `BadOption` if too few are found.
    """
    size = max(_MIN_BATCH, min(_MAX_BATCH, _MAX_TABLE_SIZE // recipe.table_size))
    found: dict[bytes, Made] = {}
    poor_batches = 0
    with ProgressBar(
        total=count, desc=f"rooms {recipe.name}", delay=1, disable=not progress
    ) as bar:
        for batch in itertools.count():
            check_time(f"generating rooms {recipe.name}")
            before = len(found)
            for name, made in _batch(recipe, split, batch, size):
                found.setdefault(name, made)
                if len(found) == count:
                    return list(found.values())
            bar.update(len(found) - before)
            poor_batches += len(found) - before < size * _MIN_NEW_SHARE
            if poor_batches == _MAX_POOR_BATCHES:
                if fewer and found:
                    return list(found.values())
                raise BadOption(
                    f"only {len(found)} of {count} rooms {recipe.name} were found for split "
                    f"{split!r}: ask for fewer (rooms=), or widen difficulty, walls or size"
                )
    raise AssertionError("batches never end")


def _batch(recipe: Recipe, split: str, number: int, size: int) -> Iterator[tuple[bytes, Made]]:
    """Yield the rooms of one batch of candidates, with their canonical names."""
    chance = Numbers(f"{VERSION}/{recipe.name}/{split}/{number}")
    floor = _carve(recipe, chance, size * 12 // _SHARES[split])
    # Different random floor cells of each room as a mask. Shape [R, inner cells].
    draws = chance.numbers(*floor.shape) >> np.uint64(1)
    draws[~floor] = np.iinfo(np.uint64).max
    chosen = np.argsort(draws, axis=1, kind="stable")[:, : recipe.boxes]
    targets = np.zeros_like(floor)
    np.put_along_axis(targets, chosen, True, axis=1)
    targets = targets & floor
    plan = np.where(targets, TARGET, np.where(floor, FLOOR, WALL)).astype(np.uint8)
    plan = plan.reshape(-1, *recipe.inner)
    ours = np.array([split_of(name) == split for name in canonical(plan)])
    whole = floor.sum(1) >= recipe.floor_sizes[0]  # some walks carve too few cells
    selected = np.flatnonzero(ours & whole & (targets.sum(1) == recipe.boxes))[:size]
    if not len(selected):
        return
    starts = _starts(recipe, floor[selected], targets[selected], chance)
    if not len(starts.rows):
        return
    tiles = plan[selected][starts.rows]
    tiles.reshape(len(tiles), -1)[starts.boxes] = BOX
    tiles.reshape(len(tiles), -1)[starts.player] += np.uint8(PLAYER - FLOOR)
    full = np.full((len(tiles), recipe.height, recipe.width), WALL, np.uint8)
    full[:, 1:-1, 1:-1] = tiles
    for name, drawing, moves in zip(canonical(tiles), full, starts.moves.tolist(), strict=True):
        yield bytes(name), Made(recipe.height, drawing.tobytes(), moves)


def _starts(
    recipe: Recipe, floor: NDArray[np.bool_], targets: NDArray[np.bool_], chance: Numbers
) -> Starts:
    if recipe.has_table:
        boards = boards_for(*recipe.inner, recipe.boxes)
        draws = chance.numbers(len(floor), 2)
        return retrograde.start_states(boards, floor, targets, recipe.moves, draws)
    names = [f"{chance.name}/{row}" for row in range(len(floor))]
    return reverse_starts.start_states(recipe.inner, floor, targets, recipe.moves, names)


def split_of(plan: bytes) -> str:
    """Return the split of a floor plan, given by its canonical name."""
    number = int.from_bytes(blake2b(plan, digest_size=8).digest(), "big")
    return _SPLIT_OF_RESIDUE[number % len(_SPLIT_OF_RESIDUE)]


def _carve(recipe: Recipe, chance: Numbers, count: int) -> NDArray[np.bool_]:
    """Return `count` connected floors, carved by random walks. Shape [R, inner cells]."""
    height, width = recipe.inner
    cells = height * width
    low, high = recipe.floor_sizes
    goal = low + chance.below(high - low + 1, count)
    floor = np.zeros((count, cells), np.bool_)
    row, column = chance.below(height, count), chance.below(width, count)
    heading = chance.below(4, count)
    rows, columns = np.array([-1, 1, 0, 0]), np.array([0, 0, -1, 1])
    rows_of_batch, size = np.arange(count), np.zeros(count, np.int64)
    draws = chance.numbers(8 * cells, count)
    turns = (draws >> np.uint64(2)) % np.uint64(1000) < np.uint64(1000 * _TURN_PROBABILITY)
    headings = (draws & np.uint64(3)).astype(np.int64)
    for turn, fresh in zip(turns, headings, strict=True):
        at = row * width + column
        carved = (size < goal) & ~floor[rows_of_batch, at]
        floor[rows_of_batch[carved], at[carved]] = True
        size += carved
        heading = np.where(turn, fresh, heading)
        row = np.clip(row + rows[heading], 0, height - 1)
        column = np.clip(column + columns[heading], 0, width - 1)
    return floor


class Numbers:
    """Random arrays by name, free of numpy's version: splitmix64 (Steele, Lea, Flood 2014)."""

    def __init__(self, name: str) -> None:
        self.name = name
        digest = blake2b(name.encode(), digest_size=8).digest()
        self._seed = np.uint64(int.from_bytes(digest, "big"))
        self._position = 0

    def numbers(self, *shape: int) -> Integers:
        """Return uniform 64-bit integers."""
        count = int(np.prod(shape))
        first = self._position + 1
        self._position += count
        with np.errstate(over="ignore"):
            z = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            z += self._seed
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))).reshape(shape)

    def below(self, limit: int | NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """Return integers in [0, limit). Shape [count]."""
        top = (self.numbers(count) >> np.uint64(33)).astype(np.int64)
        return (top * limit) >> 31
