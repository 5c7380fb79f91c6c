"""The attribute and instruction files as an SQLite database, looked up by asin."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

from agentgyms.core.errors import DataCorrupt
from agentgyms.envs.webshop.build.json_stream import object_items

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
