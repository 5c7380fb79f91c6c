"""Opens the files of a stored catalogue, and checks their sizes, types and shapes.

| file | what it holds |
|---|---|
| `manifest.json` | format, version, number of products, categories, sizes and checksums |
| `products.jsonl` | the products, one row each |
| `product_offset.npy` | the byte offset of each row, and of the end: int64 [N + 1] |
| `asin.npy`, `asin_order.npy` | the asins as bytes, and their sorted order: int64 [N] |
| the fields of `GoalColumns` | one `.npy` each |
| `index/` | the search index |
| `goals-synthetic/`, `goals-human/` | the goal lists of the default seed |
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import DataCorrupt
from agentgyms.data.manifests import read_manifest
from agentgyms.envs.webshop.catalogue.goal_columns import GoalColumns
from agentgyms.envs.webshop.catalogue.product_rows import decode
from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.storage.array_files import load_array

FORMAT: Final = 1
"""Version of the folder's layout; other versions are refused."""

PRODUCTS: Final = "products.jsonl"
INDEX: Final = "index"

_MIN_MAPPED_BYTES: Final = 1 << 16
"""Smaller arrays are read into memory: a map takes whole pages and a file handle."""

_ADVICE: Final = "import it again with `agentgyms data import webshop PATH`"


class MappedProducts:
    """The products of a file with one row each, decoded on access."""

    def __init__(self, path: Path, offset: NDArray[np.int64]) -> None:
        """Map the file; row i is bytes `offset[i]` to `offset[i + 1]`."""
        self._path, self._offset = path, offset
        with path.open("rb") as file:
            self._rows = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if int(offset[-1]) != len(self._rows):
            raise DataCorrupt(f"{path} does not end where its last row does: {_ADVICE}")

    def __len__(self) -> int:
        return len(self._offset) - 1

    def __getitem__(self, position: int, /) -> Product:
        """Return a product; raise `DataCorrupt` if its row is damaged."""
        first, end = int(self._offset[position]), int(self._offset[position + 1])
        try:
            return decode(self._rows[first:end])
        except (ValueError, TypeError, AttributeError) as e:
            raise DataCorrupt(
                f"{self._path}, bytes {first} to {end}: damaged ({e}): {_ADVICE}"
            ) from None


class StoredCatalogue(NamedTuple):
    """The contents of a catalogue's folder, without the index."""

    products: MappedProducts
    version: str
    asin: NDArray[np.bytes_]
    asin_order: NDArray[np.int64]
    columns: GoalColumns
    categories: list[str]


def read_stored(folder: Path) -> StoredCatalogue:
    """Memory-map and check a catalogue's files; raise `DataCorrupt` if one is missing or wrong."""
    manifest = read_manifest(folder)
    if manifest.get("format") != FORMAT:
        raise DataCorrupt(
            f"{folder} has a catalogue of format {manifest.get('format')!r}, this version reads "
            f"{FORMAT}: {_ADVICE}"
        )
    version, categories = manifest.get("version"), manifest.get("categories")
    if not isinstance(version, str) or not isinstance(categories, list):
        raise DataCorrupt(f"the manifest of {folder} has no version or no categories: {_ADVICE}")
    for name, (size, _) in manifest["files"].items():
        file = folder / name
        found = file.stat().st_size if file.is_file() else None
        if found != size:
            raise DataCorrupt(
                f"{file} has {'no' if found is None else found} bytes, expected {size}: {_ADVICE}"
            )
    asin, asin_order, offset = (
        _array(folder, name) for name in ("asin", "asin_order", "product_offset")
    )
    columns = GoalColumns(*(_array(folder, name) for name in GoalColumns._fields))
    _check_shapes(folder, asin, asin_order, offset, columns)
    products = MappedProducts(folder / PRODUCTS, offset)
    return StoredCatalogue(products, version, asin, asin_order, columns, categories)


def _array(folder: Path, name: str) -> NDArray[Any]:
    path = folder / f"{name}.npy"
    try:
        large = path.stat().st_size > _MIN_MAPPED_BYTES
        return load_array(path, mapped=large)
    except (OSError, ValueError) as e:
        raise DataCorrupt(f"{path} cannot be read ({e}): {_ADVICE}") from None


def _check_shapes(
    folder: Path,
    asin: NDArray[Any],
    asin_order: NDArray[Any],
    offset: NDArray[Any],
    columns: GoalColumns,
) -> None:
    num_products, num_human = len(asin), len(columns.human_number)
    int32, int64 = np.dtype(np.int32), np.dtype(np.int64)
    rows, ends = (num_products,), (num_products + 1,)
    expected = {
        "asin": (asin, asin.dtype if asin.dtype.kind == "S" else np.dtype("S10"), rows),
        "asin_order": (asin_order, int64, rows),
        "product_offset": (offset, int64, ends),
        "pricing": (columns.pricing, np.dtype(np.float64), (num_products, 2)),
        "category": (columns.category, int32, rows),
        "num_combinations": (columns.num_combinations, int64, rows),
        "attribute_offset": (columns.attribute_offset, int64, ends),
        "attribute": (columns.attribute, int32, _last(columns.attribute_offset)),
        "human_offset": (columns.human_offset, int64, ends),
        "human_number": (columns.human_number, int32, _last(columns.human_offset)),
        "human_attribute_offset": (columns.human_attribute_offset, int64, (num_human + 1,)),
        "human_attribute": (columns.human_attribute, int32, _last(columns.human_attribute_offset)),
    }
    for name, (array, dtype, shape) in expected.items():
        if array.dtype != dtype or array.shape != shape:
            raise DataCorrupt(
                f"{folder / name}.npy holds {array.dtype} {list(array.shape)}, expected {dtype} "
                f"{list(shape)}: {_ADVICE}"
            )


def _last(offset: NDArray[Any]) -> tuple[int]:
    """Return the shape of the array that `offset` delimits."""
    return (int(offset[-1]) if offset.size else -1,)
