"""All goals of a catalogue as arrays: the part that does not depend on the price seed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import DataCorrupt
from agentgyms.data.users_files import parse_json, read_text
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.catalogue.goal_columns import GoalColumns
from agentgyms.envs.webshop.storage.array_files import load_array

KINDS: Final = ("synthetic", "human")
SPLITS: Final = ("train", "valid", "test")
CUTS: Final = ("product", "original")
MAX_GOALS: Final = 100_000_000
SHUFFLE_SEED: Final = 233
ORIGINAL_TEST: Final = range(500)
ORIGINAL_VALID: Final = range(500, 1500)

_FORMAT: Final = 1
_TRAIN, _VALID, _TEST = range(3)


@dataclass(frozen=True, eq=False)
class GoalTable:
    """The goals of one kind, in R rows with one goal or more each.

    A synthetic row is a product with an instruction and has one goal for every combination of its
    options; a human row is one instruction of a person. The n goals are numbered row by row.
    """

    position: NDArray[np.int32]  # position of the row's product [R]
    instruction: NDArray[np.int32]  # index in `product.human`; 0 in synthetic rows [R]
    # Number of the row's first goal; row i has `start[i]` to `start[i + 1]` [R + 1].
    start: NDArray[np.int64]
    weight: NDArray[np.float64]  # weight of each of the row's goals [R]
    order: NDArray[np.int32]  # numbers of the goals in the original's shuffled order [n]
    # Numbers of the goals of `train`, then `valid`, then `test`, each sorted by id; no product is
    # in two splits [n].
    product: NDArray[np.int32]
    # The same for the original's cut; empty if there are too few [n] or [0].
    original: NDArray[np.int32]
    product_sizes: tuple[int, ...]  # number of goals of each split in `product`

    @staticmethod
    def of(catalogue: Catalogue, kind: str) -> GoalTable:
        """Return the table of a catalogue. A million goals take about two seconds."""
        columns = catalogue.columns
        position, instruction, count = _rows(columns, kind)
        _check_total(catalogue, position, count)
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        # The numbers below `count` in the original's shuffled order.
        numbers = list(range(int(start[-1])))
        Random(SHUFFLE_SEED).shuffle(numbers)
        order = np.array(numbers, np.int32)
        asins = catalogue.asins(position.tolist())
        by_id = _sorted_by_id(asins, kind, instruction, start)
        of_product = np.repeat(_product_splits(asins, count), count)
        product, sizes = _group_by_split(by_id, of_product)
        original = np.empty(0, np.int32)
        if len(order) > ORIGINAL_VALID.stop:
            # The split of each goal under the original's cut of the shuffled list.
            split = np.full(len(order), _TRAIN, np.int8)
            split[order[ORIGINAL_TEST.start : ORIGINAL_TEST.stop]] = _TEST
            split[order[ORIGINAL_VALID.start : ORIGINAL_VALID.stop]] = _VALID
            original, _ = _group_by_split(by_id, split)
        weight = _weights(columns, position, count) if kind == "synthetic" else np.ones(len(count))
        return GoalTable(
            position, instruction, start, weight, order, product, original, tuple(sizes)
        )

    def write(self, folder: Path, **metadata: Any) -> None:
        """Write the table as files for `open`, with `metadata` in its JSON file."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))
        metadata |= {"format": _FORMAT, "product_sizes": self.product_sizes}
        text = json.dumps(metadata, indent=1, sort_keys=True)
        (folder / "goals.json").write_text(text + "\n", encoding="utf-8")

    @staticmethod
    def open(folder: Path, *, num_products: int, **metadata: Any) -> GoalTable:
        """Memory-map a table that `write` wrote with equal metadata, else raise `DataCorrupt`."""
        try:
            found = parse_json(read_text(folder / "goals.json"))
            sizes = tuple(map(int, found.pop("product_sizes")))
            arrays = {name: np.asarray(load_array(folder / f"{name}.npy")) for name in _ARRAYS}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise DataCorrupt(f"the goals in {folder} cannot be read ({e}): {_REBUILD}") from e
        if found != metadata | {"format": _FORMAT}:
            raise DataCorrupt(f"the goals in {folder} belong to another catalogue: {_REBUILD}")
        table = GoalTable(**arrays, product_sizes=sizes)
        table._check(folder)
        if not np.all((table.position >= 0) & (table.position < num_products)):
            raise DataCorrupt(
                f"the goals in {folder} name products that the catalogue lacks: {_REBUILD}"
            )
        return table

    def _check(self, folder: Path) -> None:
        rows = len(self.position)
        goals = int(self.start[-1]) if len(self.start) else -1
        cut = goals if goals > ORIGINAL_VALID.stop else 0
        expected = (rows, rows + 1, rows, goals, goals, cut, goals)
        found = (
            len(self.instruction),
            len(self.start),
            len(self.weight),
            len(self.order),
            len(self.product),
            len(self.original),
            sum(self.product_sizes),
        )
        if found != expected or len(self.product_sizes) != len(SPLITS):
            raise DataCorrupt(
                f"the goals in {folder} have lengths {found}, expected {expected}: {_REBUILD}"
            )

    def split(self, name: str, cut: str) -> NDArray[np.int32]:
        """Return the numbers of the goals of a split, sorted by id."""
        sizes = self.product_sizes
        if cut == "original":
            held_out = len(ORIGINAL_VALID), len(ORIGINAL_TEST)
            sizes = (len(self.original) - sum(held_out), *held_out)
        first = sum(sizes[: SPLITS.index(name)])
        numbers: NDArray[np.int32] = getattr(self, cut)
        return numbers[first : first + sizes[SPLITS.index(name)]]


_ARRAYS: Final = tuple(f.name for f in fields(GoalTable) if f.name != "product_sizes")
_REBUILD: Final = "import the WebShop data again (agentgyms data import webshop PATH)"


def _rows(
    columns: GoalColumns, kind: str
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return the position, the instruction and the number of goals of each row."""
    if kind == "human":
        per_product = np.diff(columns.human_offset)
        position = np.repeat(np.arange(len(per_product), dtype=np.int32), per_product)
        return position, np.array(columns.human_number), np.ones(len(position), np.int64)
    position = np.flatnonzero(np.diff(columns.attribute_offset)).astype(np.int32)
    return position, np.zeros(len(position), np.int32), columns.num_combinations[position]


def _check_total(
    catalogue: Catalogue, position: NDArray[np.int32], count: NDArray[np.int64]
) -> None:
    total = count.sum(dtype=np.float64)
    if total <= MAX_GOALS:
        return
    most = int(np.argmax(count))
    (asin,) = catalogue.asins([int(position[most])])
    raise DataCorrupt(
        f"the options of the products combine to {total:.0f} goals, {count[most]} of them of "
        f"product {asin}: expected at most {MAX_GOALS}"
    )


def _sorted_by_id(
    asins: Sequence[str], kind: str, instruction: NDArray[np.int32], start: NDArray[np.int64]
) -> NDArray[np.int32]:
    suffixes = instruction.tolist() if kind == "human" else [""] * len(asins)
    key = [f"{asin}/{suffix}" for asin, suffix in zip(asins, suffixes, strict=True)]
    numbers = [
        start[row] + _text_order(int(start[row + 1] - start[row]))
        for row in sorted(range(len(key)), key=key.__getitem__)
    ]
    return np.concatenate([np.empty(0, np.int64), *numbers]).astype(np.int32)


@lru_cache(maxsize=1024)
def _text_order(count: int) -> NDArray[np.int64]:
    """Return the numbers below `count`, sorted as decimal texts: 0, 1, 10, 2, ..."""
    return np.array(sorted(range(count), key=str), np.int64)


def _product_splits(asins: Sequence[str], count: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the split of each row; valid and test have a tenth of the products each, by digest."""
    products = {asin for asin, goals in zip(asins, count.tolist(), strict=True) if goals}
    ranked = sorted(products, key=lambda asin: blake2b(asin.encode(), digest_size=8).digest())
    held_out = max(1, len(ranked) // 10) if len(ranked) >= len(SPLITS) else 0
    split = dict.fromkeys(ranked[:held_out], _TEST)
    split |= dict.fromkeys(ranked[held_out : 2 * held_out], _VALID)
    return np.array([split.get(asin, _TRAIN) for asin in asins], np.int8)


def _group_by_split(
    by_id: NDArray[np.int32], split: NDArray[np.int8]
) -> tuple[NDArray[np.int32], tuple[int, ...]]:
    """Return the numbers split by split, each sorted by id, and the sizes of the splits."""
    splits = [by_id[split[by_id] == which] for which in range(len(SPLITS))]
    return np.concatenate(splits), tuple(len(numbers) for numbers in splits)


def _weights(
    columns: GoalColumns, position: NDArray[np.int32], count: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the mean over a goal's attributes of 1 / (goals that have it), added left to right."""
    if not len(position):
        return np.empty(0)
    per_row = np.diff(columns.attribute_offset)[position]
    num_goals = np.bincount(columns.attribute, np.repeat(count, per_row)).tolist()
    attribute, first = columns.attribute.tolist(), columns.attribute_offset[position].tolist()
    weight = np.zeros(len(position))
    for row, (begin, length) in enumerate(zip(first, per_row.tolist(), strict=True)):
        if count[row]:
            total = 0.0
            for which in attribute[begin : begin + length]:
                total += 1.0 / num_goals[which]
            weight[row] = total / length
    return weight
