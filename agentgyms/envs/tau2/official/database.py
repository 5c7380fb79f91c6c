"""A database of the benchmark: the records of the file, and those that calls have changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

Tables = Mapping[str, Mapping[str, dict[str, Any]]]
"""The records of each table by their keys."""


class CallError(Exception):
    """A tool refuses a call; the message is the benchmark's."""


class Database:
    """The records of a file, which nobody changes, and changed copies of some.

    Args:
        base: The file's records.
        changes: The changed records of each table, of which copies are changed further.
    """

    def __init__(self, base: Tables, changes: Tables | None = None) -> None:
        """Copy the changes."""
        self._base = base
        self._changes: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in base}
        for name, records in (changes or {}).items():
            self._changes[name] |= copy.deepcopy(dict(records))

    def has(self, table: str, key: str) -> bool:
        """Return whether there is a record."""
        return key in self._changes[table] or key in self._base[table]

    def get(self, table: str, key: str) -> dict[str, Any]:
        """Return a record to read."""
        found = self._changes[table].get(key)
        return self._base[table][key] if found is None else found

    def edit(self, table: str, key: str) -> dict[str, Any]:
        """Return a record to change."""
        if key not in self._changes[table]:
            self._changes[table][key] = copy.deepcopy(self._base[table][key])
        return self._changes[table][key]

    def put(self, table: str, key: str, record: dict[str, Any]) -> None:
        """Add a record."""
        self._changes[table][key] = record

    def records(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a table in the file's order, then the added ones."""
        for key in self._base[table]:
            yield self.get(table, key)
        for key, record in self._changes[table].items():
            if key not in self._base[table]:
                yield record

    @property
    def changes(self) -> Tables:
        """The records that are not those of the file."""
        return {
            table: {
                key: record
                for key, record in sorted(records.items())
                if not same(record, self._base[table].get(key))
            }
            for table, records in self._changes.items()
        }


def same(one: Any, other: Any) -> bool:
    """Return whether two values have the same hash in the benchmark, where 0 is not 0.0."""
    return written(one) == written(other)


def written(value: Any) -> str:
    """Return the text that the benchmark hashes."""
    return json.dumps(value, sort_keys=True)
