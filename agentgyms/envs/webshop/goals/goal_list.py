"""The list of all goals of a catalogue, and its splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import BadOption, DataCorrupt, UnknownTask
from agentgyms.core.tasks import TaskSet, check_split
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.goals.goal import (
    Goal,
    bound_text,
    combination,
    draw_prices,
    option_text,
)
from agentgyms.envs.webshop.goals.goal_arrays import CUTS, KINDS, ORIGINAL_VALID, SPLITS, GoalTable
from agentgyms.envs.webshop.goals.splits import GoalTasks
from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.storage.array_files import load_array

__all__ = ["DEFAULT_SEED", "SAMPLES", "Goal", "GoalList", "check_kind", "write"]

DEFAULT_SEED: Final = 233
SAMPLES: Final = 12
_HUMAN: Final = "human-"
_MAX_DIGITS: Final = 9

_Prices = tuple[NDArray[np.float64], NDArray[np.float64]]


class GoalList:
    """The goals of a catalogue in the original's order, which is shuffled with seed 233.

    Prices are sampled once, from `seed`. An instruction without attributes has no goals.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        kind: str,
        seed: int,
        table: GoalTable,
        prices: _Prices,
    ) -> None:
        self.kind, self.seed = kind, seed
        self.families: Sequence[str] = tuple(catalogue.categories)
        self._catalogue, self._table = catalogue, table
        self._price, self._bound = prices

    @staticmethod
    def of(catalogue: Catalogue, kind: str = "synthetic", seed: int = DEFAULT_SEED) -> GoalList:
        """Return the `synthetic` or `human` goals of a catalogue.

        Files of `write` are mapped; without them or with another seed, a million goals take 2 s.
        """
        check_kind(kind)
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise BadOption(f"goal_seed must be an integer, got {seed!r}")
        folder = _folder(catalogue.folder, kind) if catalogue.folder else None
        if folder is None or not folder.is_dir():
            table = GoalTable.of(catalogue, kind)
            prices = draw_prices(catalogue.columns.pricing, table.position, seed)
            return GoalList(catalogue, kind, seed, table, prices)
        table = GoalTable.open(
            folder, num_products=len(catalogue), catalogue=catalogue.version, kind=kind
        )
        files = _price_files(folder, seed)
        if all(file.is_file() for file in files):
            prices = _open_prices(files, (len(catalogue), len(table.position)))
        else:
            prices = draw_prices(catalogue.columns.pricing, table.position, seed)
        return GoalList(catalogue, kind, seed, table, prices)

    @property
    def version(self) -> str:
        """The kind and the seed, which identify this list among those of the catalogue."""
        return f"{self.kind}-{self.seed}"

    def __len__(self) -> int:
        return len(self._table.order)

    def __getitem__(self, index: int) -> Goal:
        """Return the goal at `index` of the shuffled list."""
        return self._goal(int(self._table.order[index]))

    def find(self, task_id: str) -> Goal:
        """Return the goal of this id; an `UnknownTask` says which part of the id is wrong."""
        asin, slash, suffix = str(task_id).rpartition("/")
        digits = suffix.removeprefix(_HUMAN) if self.kind == "human" else suffix
        form = f"{_HUMAN}<number>" if self.kind == "human" else "<number>"
        if not slash or not _is_number(digits) or (self.kind == "human") == (digits == suffix):
            raise UnknownTask(
                f"{task_id!r} is not the id of a {self.kind} goal: expected <asin>/{form}"
            )
        position = self._catalogue.position(asin)
        if position is None:
            raise UnknownTask(f"task {task_id!r}: the catalogue has no product {asin!r}")
        wanted = np.int32(position)  # the array's type, so that numpy does not convert the array
        first = np.searchsorted(self._table.position, wanted)
        rows = range(int(first), int(np.searchsorted(self._table.position, wanted, side="right")))
        number = self._find_number(rows, int(digits))
        if number is None:
            raise UnknownTask(f"task {task_id!r}: product {asin} {self._existing_goals(rows)}")
        return self._goal(number)

    def price(self, position: int) -> float:
        """Return the price of a product, in dollars; sampled once if it is a range."""
        return float(self._price[position])

    def tasks(self, split: str = "train", cut: str = "product") -> TaskSet:
        """Return the tasks of a split, in the order of their ids; families are categories.

        `WebShopEnv` says which tasks are in which split. The cut `product` ranks the products that
        have goals by a digest of their asins.
        """
        check_split(split, (*SPLITS, "sample"), "WebShop")
        if cut not in CUTS:
            raise BadOption(f"cut {cut!r} is unknown: expected one of {', '.join(CUTS)}")
        needed = ORIGINAL_VALID.stop + 1
        if cut == "original" and len(self) < needed:
            raise BadOption(
                f"cut 'original' takes the first 500 goals as test, the next 1000 as valid and "
                f"the rest as train: expected at least {needed} goals, but the {self.kind} list "
                f"of this catalogue has {len(self)}; use cut='product'"
            )
        numbers = self._table.split("train" if split == "sample" else split, cut)
        if not len(numbers):
            raise BadOption(
                f"split {split!r} of the {self.kind} goals is empty: the list has {len(self)} "
                f"goals, and cut 'product' needs at least three products with goals"
            )
        if split == "sample":
            count = min(SAMPLES, len(numbers))
            numbers = numbers[np.arange(count) * len(numbers) // count]
        return GoalTasks(split, self, numbers)

    def task_id(self, number: int) -> str:
        """Return the id of a goal by its number in the list before the shuffle."""
        row, n = self._row_of(number)
        (asin,) = self._catalogue.asins([int(self._table.position[row])])
        return f"{asin}/{self._id_suffix(row, n)}"

    def family_numbers(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the index in `families` of each goal, by its number. [K] to [K]."""
        rows = np.searchsorted(self._table.start, numbers, side="right") - 1
        return self._catalogue.columns.category[self._table.position[rows]]

    def _row_of(self, number: int) -> tuple[int, int]:
        """Return the row of a goal, and its index among the row's goals."""
        row = int(np.searchsorted(self._table.start, number, side="right")) - 1
        return row, number - int(self._table.start[row])

    def _id_suffix(self, row: int, n: int) -> str:
        return f"{_HUMAN}{self._table.instruction[row]}" if self.kind == "human" else str(n)

    def _goal(self, number: int) -> Goal:
        row, n = self._row_of(number)
        position, bound = int(self._table.position[row]), float(self._bound[row])
        product = self._catalogue[position]
        text, attributes, options = self._instruction_parts(product, row, n)
        return Goal(
            task_id=f"{product.asin}/{self._id_suffix(row, n)}",
            position=position,
            asin=product.asin,
            category=product.category,
            query=product.query,
            name=product.title,
            product_category=product.product_category,
            instruction_text=text + bound_text(bound),
            attributes=attributes,
            price_upper=bound,
            goal_options=options,
            weight=float(self._table.weight[row]),
        )

    def _instruction_parts(
        self, product: Product, row: int, n: int
    ) -> tuple[str, tuple[str, ...], Mapping[str, str] | tuple[str, ...]]:
        """Return the instruction, attributes and options of a row's n-th goal."""
        if self.kind == "human":
            written = product.human[int(self._table.instruction[row])]
            return written.text.strip("."), written.attributes, written.options
        options = combination(product, n)
        text = product.instruction + option_text(options)
        return text, product.instruction_attributes, options

    def _find_number(self, rows: range, wanted: int) -> int | None:
        start = self._table.start
        for row in rows:
            if self.kind == "human":
                if self._table.instruction[row] == wanted:
                    return int(start[row])
            elif wanted < start[row + 1] - start[row]:
                return int(start[row]) + wanted
        return None

    def _existing_goals(self, rows: range) -> str:
        suffixes = [
            self._id_suffix(row, int(n))
            for row in rows
            for n in range(int(self._table.start[row + 1] - self._table.start[row]))[-1:]
        ]
        return f"has goals up to {suffixes[-1]}" if suffixes else f"has no {self.kind} goals"


def write(catalogue: Catalogue, folder: Path, kind: str, seed: int = DEFAULT_SEED) -> None:
    """Write the goals of a catalogue, with the prices of a seed, as files for `GoalList.of`.

    Eight million goals take 15 seconds, 0.5 GB of memory and 110 MB on disk. The catalogue's
    version must be final. The files are in the folder `goals-<kind>` of `folder`.
    """
    check_kind(kind)
    table = GoalTable.of(catalogue, kind)
    price, bound = draw_prices(catalogue.columns.pricing, table.position, seed)
    target = _folder(folder, kind)
    table.write(target, catalogue=catalogue.version, kind=kind)
    for file, array in zip(_price_files(target, seed), (price, bound), strict=True):
        np.save(file, array)


def check_kind(kind: str) -> str:
    """Return `kind`, which must be one of `KINDS`."""
    if kind not in KINDS:
        raise BadOption(f"goals {kind!r} are unknown: expected one of {', '.join(KINDS)}")
    return kind


def _folder(folder: Path, kind: str) -> Path:
    return Path(folder) / f"goals-{kind}"


def _price_files(folder: Path, seed: int) -> tuple[Path, Path]:
    return folder / f"price-{seed}.npy", folder / f"bound-{seed}.npy"


def _open_prices(files: tuple[Path, Path], shapes: tuple[int, int]) -> _Prices:
    try:
        price, bound = (np.asarray(load_array(file)) for file in files)
    except (OSError, ValueError) as e:
        raise DataCorrupt(f"the prices in {files[0].parent} cannot be read: {e}") from e
    found = price.shape, bound.shape
    if found != tuple((length,) for length in shapes):
        raise DataCorrupt(
            f"{files[0]} and {files[1].name} have shapes {found}, expected lengths {shapes}; "
            f"import the data again"
        )
    return price, bound


def _is_number(digits: str) -> bool:
    """Return whether the digits are a number in the form of ids: no sign, no leading zero."""
    plain = digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS
    return plain and str(int(digits)) == digits
