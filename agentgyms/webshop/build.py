"""Builds a catalogue from the official files, in one pass that goes on where it was interrupted.

Products go to one file, line by line. Every `SHARD` of them the file is brought to disk and its new
part is entered in a journal: how far both files are, and a checksum. A later build of the same
source checks those parts and reads on behind the last good one.
"""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from tqdm import tqdm

from agentgyms.download import digest_file
from agentgyms.errors import DataCorrupt, DataError
from agentgyms.manifests import MANIFEST, Part, write_manifest
from agentgyms.webshop.catalogue import Catalogue, asin_columns
from agentgyms.webshop.catalogue_files import FORMAT, INDEX, PRODUCTS
from agentgyms.webshop.goal_columns import ColumnsBuilder
from agentgyms.webshop.goal_table import KINDS
from agentgyms.webshop.goals import DEFAULT_SEED, GoalList, write
from agentgyms.webshop.join import Join
from agentgyms.webshop.journal import Journal
from agentgyms.webshop.json_stream import list_items
from agentgyms.webshop.official import asin_of, product_of
from agentgyms.webshop.official_files import OfficialFiles, locate
from agentgyms.webshop.product import Product
from agentgyms.webshop.product_rows import decode, encode
from agentgyms.webshop.text_index import IndexBuilder, document_text

SHARD: Final = 20_000

_SCRATCH: Final = "unfinished"
_REPLACED: Final = "\ufffd".encode()


def build(source: Path, target: Path, progress: bool) -> dict[str, Any]:
    """Write the catalogue of the official files to a folder.

    Args:
        source: A folder or archive with the files, or the file of products.
        target: A folder that is new, or was left by a build that was interrupted.
        progress: Show progress bars.

    Returns:
        The manifest: what is in the folder.

    Raises:
        DataMissing: A file is not there.
        DataCorrupt: A file is damaged; the message names the file and the byte, or the item and
            the field.
    """
    scratch = target / _SCRATCH
    scratch.mkdir(parents=True, exist_ok=True)
    unpacked = scratch / "source"
    try:
        assembly = _assembled(locate(source, unpacked), scratch, target, progress)
    except DataError as e:  # name what the user knows
        raise type(e)(str(e).replace(str(unpacked), str(source))) from None
    if not assembly.asins:
        raise DataCorrupt(f"{source} holds no product")
    return _finish(assembly, target, progress)


def _assembled(files: OfficialFiles, scratch: Path, target: Path, progress: bool) -> _Assembly:
    """Write the products, and return what else is made of them."""
    signature = [*files.signature, ["format", FORMAT]]
    journal = Journal(scratch / "journal.json", target / PRODUCTS, signature)
    shutil.rmtree(target / INDEX, ignore_errors=True)
    with Join(_joined(files, scratch, journal)) as join:
        assembly = _Assembly(target / INDEX)
        with tqdm(
            total=files.products.stat().st_size,
            desc=f"read {files.products.name}",
            unit="B",
            unit_scale=True,
            disable=not progress,
        ) as bar:
            for row in journal.rows():
                assembly.add(decode(row), row)
            bar.update(journal.source_end)
            for product, row in _fresh(files, join, journal, assembly.seen, bar):
                assembly.add(product, row)
    return assembly


def _joined(files: OfficialFiles, scratch: Path, journal: Journal) -> Path:
    """Return the database of attributes and human instructions, made unless it is whole."""
    database = scratch / "join.sqlite"
    if not journal.joined or not database.is_file():
        database.unlink(missing_ok=True)
        with Join(database) as join:
            join.fill("about", files.attributes)
            join.fill("people", files.human)
        journal.join_done()
    return database


def _fresh(
    files: OfficialFiles, join: Join, journal: Journal, seen: set[str], bar: tqdm[Any]
) -> Iterator[tuple[Product, bytes]]:
    """Yield the products that the journal does not have, after writing each to the file."""
    end, number, waiting = journal.source_end, journal.num_items, 0
    with journal.writer() as writer:
        for read in list_items(files.products, end):
            bar.update(read.end - end)
            end, number = read.end, number + 1
            where = f"{files.products}, item {number}"
            asin = asin_of(read.value, where)
            if asin is None or asin in seen:
                continue
            product = product_of(
                read.value, join.get("about", asin), join.get("people", asin), where
            )
            row = encode(product)
            writer.write(row)
            waiting += 1
            if _REPLACED in row:  # as a build that goes on later has it
                product = decode(row)
            yield product, row
            if waiting == SHARD:
                writer.close_shard(num_items=number, source_end=end)
                waiting = 0
        writer.close_shard(num_items=number, source_end=end)


class _Assembly:
    """What a catalogue has beside the products themselves, collected product by product."""

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
    return manifest | {"files": _checksums(target, progress)}


def _checksums(folder: Path, progress: bool) -> dict[str, tuple[int, str]]:
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)
    return {
        file.relative_to(folder).as_posix(): (file.stat().st_size, digest_file(file))
        for file in tqdm(files, desc="checksums", unit="file", disable=not progress)
    }
