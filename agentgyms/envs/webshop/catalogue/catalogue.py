"""All products of a shop, their index and the goals' arrays; memory-mapped if from a folder."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import DataCorrupt
from agentgyms.envs.webshop.catalogue.files import INDEX, read_stored
from agentgyms.envs.webshop.catalogue.goal_columns import ColumnsBuilder, GoalColumns
from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.search.text_index import IndexBuilder, TextIndex, document_text


class ProductRows(Protocol):
    """Products by position: a tuple, or a mapped file."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> Product: ...


class Catalogue:
    """The products of a shop, by position, by asin, and by search; read-only and thread-safe.

    Equal versions have equal products in equal order. `folder` is None if it is in memory.
    """

    def __init__(
        self,
        products: ProductRows,
        version: str,
        *,
        asin: NDArray[np.bytes_],
        asin_order: NDArray[np.int64],
        columns: GoalColumns,
        categories: Sequence[str],
        index: TextIndex,
        folder: Path | None = None,
    ) -> None:
        self.version = version
        self.index = index
        self.columns = columns
        self.categories = tuple(categories)
        self.folder = folder
        self._products = products
        self._asin, self._asin_order = asin, asin_order

    @classmethod
    def of(cls, products: Iterable[Product], version: str) -> Self:
        """Return a catalogue in memory of products with different asins, and build its index."""
        stored = tuple(products)
        index, columns = IndexBuilder(None), ColumnsBuilder()
        for product in stored:
            index.add(document_text(product))
            columns.add(product)
        asins = [product.asin for product in stored]
        asin, asin_order = asin_columns(asins)
        return cls(
            stored,
            version,
            asin=asin,
            asin_order=asin_order,
            columns=columns.finish(),
            categories=columns.categories,
            index=index.finish(asins),
        )

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the catalogue that `agentgyms data import webshop` wrote to a folder."""
        path = Path(folder)
        stored = read_stored(path)
        index = TextIndex.open(path / INDEX)
        if len(index) != len(stored.products):
            raise DataCorrupt(
                f"the search index in {path} has {len(index)} documents, expected "
                f"{len(stored.products)}: import the data set again"
            )
        return cls(
            stored.products,
            stored.version,
            asin=stored.asin,
            asin_order=stored.asin_order,
            columns=stored.columns,
            categories=stored.categories,
            index=index,
            folder=path,
        )

    def __len__(self) -> int:
        return len(self._products)

    def __getitem__(self, position: int) -> Product:
        if not 0 <= position < len(self):
            raise IndexError(f"there is no product {position}: expected 0 to {len(self) - 1}")
        return self._products[position]

    def __iter__(self) -> Iterator[Product]:
        return (self._products[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return f"Catalogue({self.version!r}, {len(self)} products)"

    @property
    def pricing(self) -> NDArray[np.float64]:
        """The prices in dollars, NaN where a product has no second one. float64 [N, 2]."""
        return self.columns.pricing

    def position(self, asin: str) -> int | None:
        """Return the position of the product with exactly this asin, None if there is none."""
        wanted = asin.encode("utf-8", "surrogatepass")
        if len(wanted) > self._asin.dtype.itemsize or wanted.endswith(b"\0"):
            return None
        try:
            place = bisect_left(self._asin_order, wanted, key=self._asin.__getitem__)
            if place == len(self._asin):
                return None
            position = int(self._asin_order[place])
            return position if self._asin[position] == wanted else None
        except IndexError as e:
            raise DataCorrupt(
                f"asin_order.npy in {self.folder} is damaged ({e}): import the data set again"
            ) from None

    def asins(self, positions: Iterable[int]) -> list[str]:
        """Return the asins of the products at some positions."""
        return [self._asin[position].decode() for position in positions]

    def search(self, query: str, k: int = 50) -> list[int]:
        """Return the positions of the products that match a query, the best first, at most `k`."""
        return [position for position, _ in self.index.search(query, k)]


def asin_columns(asins: Sequence[str]) -> tuple[NDArray[np.bytes_], NDArray[np.int64]]:
    """Return asins as bytes [N], and their positions in the order of those bytes [N]."""
    asin = np.array([name.encode() for name in asins] or [b"-"])[: len(asins)]
    return asin, np.argsort(asin, kind="stable")
