"""The files that say more about products, by asin: on disk, so that their size does not matter."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

from agentgyms.errors import DataCorrupt
from agentgyms.webshop.json_stream import object_items

_CACHE_KIB: Final = 1 << 17


class Join:
    """What JSON objects say of each key, looked up in a database of its own.

    Close it when it is not needed any more; leaving its `with` block does.
    """

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file)
        # A build that is killed begins the database anew, so nothing is written twice for safety.
        for setting in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}"):
            self._connection.execute(f"PRAGMA {setting}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()

    def fill(self, table: str, source: Path | None) -> None:
        """Read a file that holds one JSON object; of a repeated key the last one counts.

        Args:
            table: What to call it in `get`.
            source: The file; None for an empty table.

        Raises:
            DataCorrupt: It is damaged.
        """
        rows = _rows(source) if source else iter(())
        with self._connection:
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
            self._connection.execute(f"CREATE TABLE {table} (key TEXT, item TEXT)")
            self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)  # noqa: S608
            self._connection.execute(f"CREATE INDEX {table}_key ON {table} (key)")

    def get(self, table: str, key: str) -> Any:
        """Return what a table has for a key, None if it has nothing."""
        row = self._connection.execute(
            f"SELECT item FROM {table} WHERE key = ? ORDER BY rowid DESC LIMIT 1",  # noqa: S608
            (key,),
        ).fetchone()
        return None if row is None else json.loads(row[0])


def _rows(source: Path) -> Iterator[tuple[str, str]]:
    for read in object_items(source):
        try:
            read.key.encode()
        except UnicodeEncodeError:
            raise DataCorrupt(
                f"{source}: the key {read.key!r} holds half of a surrogate pair; get the file again"
            ) from None
        yield read.key, json.dumps(read.value)
