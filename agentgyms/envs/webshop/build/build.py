"""Builds a catalogue from the official files, in one pass; a killed build begins anew."""

from __future__ import annotations

import json
import shutil
import sqlite3
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from agentgyms.core.errors import DataCorrupt, DataError
from agentgyms.data.manifests import MANIFEST, Part, digest_file, write_manifest
from agentgyms.data.progress_bar import ProgressBar
from agentgyms.envs.webshop.build.json_stream import list_items, object_items
from agentgyms.envs.webshop.build.official_files import OfficialFiles, locate
from agentgyms.envs.webshop.build.official_items import asin_of, product_of
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue, asin_columns
from agentgyms.envs.webshop.catalogue.files import FORMAT, INDEX, PRODUCTS
from agentgyms.envs.webshop.catalogue.goal_columns import ColumnsBuilder
from agentgyms.envs.webshop.catalogue.product_rows import decode, encode
from agentgyms.envs.webshop.goals.goal_arrays import KINDS
from agentgyms.envs.webshop.goals.goal_list import DEFAULT_SEED, GoalList, write
from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.search.text_index import IndexBuilder, document_text

_SCRATCH: Final = "unfinished"
_REPLACEMENT_CHARACTER: Final = "\ufffd".encode()


def build(source: Path, target: Path, progress: bool) -> dict[str, Any]:
    """Write the catalogue of the official files to a new folder, and return its manifest.

    `source` is a folder or archive with the files, or the file of products. Raises `DataMissing` if
    a file is missing, and `DataCorrupt` if one is damaged: the message names the file and the byte,
    or the item and the field.
    """
    scratch = target / _SCRATCH
    scratch.mkdir(parents=True)
    unpacked = scratch / "source"
    try:
        assembly = _assemble(locate(source, unpacked), scratch, target, progress)
    except DataError as e:  # name the path that the user gave
        raise type(e)(str(e).replace(str(unpacked), str(source))) from None
    if not assembly.asins:
        raise DataCorrupt(f"{source} holds no products")
    return _finish(assembly, target, progress)


def _assemble(files: OfficialFiles, scratch: Path, target: Path, progress: bool) -> _Assembly:
    assembly = _Assembly(target / INDEX)
    with (
        Join(scratch / "join.sqlite") as join,
        (target / PRODUCTS).open("xb") as written,
        ProgressBar(
            total=files.products.stat().st_size,
            desc=f"read {files.products.name}",
            unit="B",
            unit_scale=True,
            disable=not progress,
        ) as bar,
    ):
        join.fill("about", files.attributes)
        join.fill("people", files.human)
        for product, row in _products(files, join, assembly.seen, bar):
            written.write(row)
            assembly.add(product, row)
    return assembly


def _products(
    files: OfficialFiles, join: Join, seen: set[str], bar: ProgressBar
) -> Iterator[tuple[Product, bytes]]:
    end = 0
    for number, item in enumerate(list_items(files.products), 1):
        bar.update(item.end - end)
        end = item.end
        where = f"{files.products}, item {number}"
        asin = asin_of(item.value, where)
        if asin is None or asin in seen:
            continue
        about, people = join.get("about", asin), join.get("people", asin)
        product = product_of(item.value, about, people, where)
        row = encode(product)
        if _REPLACEMENT_CHARACTER in row:  # as the catalogue reads it
            product = decode(row)
        yield product, row


class _Assembly:
    def __init__(self, index_folder: Path) -> None:
        self.asins: list[str] = []
        self.seen: set[str] = set()
        self.offset = array("q", [0])
        self.index, self.columns = IndexBuilder(index_folder), ColumnsBuilder()

    def add(self, product: Product, row: bytes) -> None:
        self.asins.append(product.asin)
        self.seen.add(product.asin)
        self.offset.append(self.offset[-1] + len(row))
        self.index.add(document_text(product))
        self.columns.add(product)


_CACHE_KIB: Final = 1 << 17


class Join:
    """A database of the entries of JSON files, by key; a context manager that closes it."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file)
        # A killed build begins anew, so the database needs no journal.
        for setting in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}"):
            self._connection.execute(f"PRAGMA {setting}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()

    def fill(self, table: str, source: Path | None) -> None:
        """Load a file with one JSON object, if any; of a repeated key the last entry counts."""
        rows = _rows(source) if source else iter(())
        with self._connection:
            self._connection.execute(f"CREATE TABLE {table} (key TEXT, item TEXT)")
            self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)  # noqa: S608
            self._connection.execute(f"CREATE INDEX {table}_key ON {table} (key)")

    def get(self, table: str, key: str) -> Any:
        """Return the entry of a key in a table, None if it has none."""
        row = self._connection.execute(
            f"SELECT item FROM {table} WHERE key = ? ORDER BY rowid DESC LIMIT 1",  # noqa: S608
            (key,),
        ).fetchone()
        return None if row is None else json.loads(row[0])


def _rows(source: Path) -> Iterator[tuple[str, str]]:
    for item in object_items(source):
        try:
            item.key.encode()
        except UnicodeEncodeError:
            raise DataCorrupt(
                f"{source}: the key {item.key!r} holds a lone surrogate; get the file again"
            ) from None
        yield item.key, json.dumps(item.value)


def _finish(assembly: _Assembly, target: Path, progress: bool) -> dict[str, Any]:
    """Write the arrays, the index, the goal lists and the manifest."""
    asin, asin_order = asin_columns(assembly.asins)
    columns = assembly.columns.finish()
    arrays = {"product_offset": np.array(assembly.offset), "asin": asin, "asin_order": asin_order}
    for name, column in (arrays | columns._asdict()).items():
        np.save(target / f"{name}.npy", column)
    assembly.index.finish(assembly.asins)
    digest = digest_file(target / PRODUCTS)[:16]
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": f"{len(asin)}-{digest}",
        "categories": assembly.columns.categories,
        "splits": {"products": Part(len(asin), digest)},
        "files": {},
    }
    write_manifest(target, manifest)
    catalogue = Catalogue.open(target)
    for kind in KINDS:
        write(catalogue, target, kind, DEFAULT_SEED)
        manifest["splits"][kind] = Part(len(GoalList.of(catalogue, kind)), digest)
    shutil.rmtree(target / _SCRATCH)
    files = sorted(file for file in target.rglob("*") if file.is_file() and file.name != MANIFEST)
    return manifest | {
        "files": {
            file.relative_to(target).as_posix(): (file.stat().st_size, digest_file(file))
            for file in ProgressBar(files, desc="checksums", unit="file", disable=not progress)
        }
    }
