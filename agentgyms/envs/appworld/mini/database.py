"""Tables of records, which worlds copy, change and compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final, TypeVar, cast

from agentgyms.envs.appworld.mini.records import KINDS, Record

R = TypeVar("R", bound=Record)

TABLES: Final[Mapping[str, type[Record]]] = {kind.TABLE: kind for kind in KINDS}
"""The kind of record of each table, by the table's name."""

_VALUES: Final = {kind.TABLE: attrgetter(*kind.FIELDS) for kind in KINDS}


class Database:
    """One table of records for each kind, sorted by id.

    A new record's id is one above the greatest current id of its table. So the state consists of
    the records alone, and equal digests imply equal behaviour.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        """Store records of any kinds; in each table their ids must increase."""
        self._tables: dict[str, dict[int, Record]] = {name: {} for name in TABLES}
        self._digests: dict[str, bytes] = {}
        for record in records:
            self.add(record)

    def copy(self) -> Database:
        """Return a database with the same records, which changes independently."""
        copied = Database.__new__(Database)
        copied._tables = {name: table.copy() for name, table in self._tables.items()}
        copied._digests = self._digests.copy()
        return copied

    def of(self, kind: type[R]) -> Mapping[int, R]:
        """Return the records of a kind by id; the mapping must not be changed."""
        return cast("Mapping[int, R]", self._tables[kind.TABLE])

    def table(self, name: str) -> Mapping[int, Record]:
        """Return the records of a table by id; the mapping must not be changed."""
        return self._tables[name]

    def next_id(self, kind: type[Record]) -> int:
        """Return the id for a new record of a kind."""
        return next(reversed(self._tables[kind.TABLE]), 0) + 1

    def add(self, record: Record) -> None:
        """Add a record; raise `ValueError` if its id is not above those of its table."""
        key, expected = record.key, self.next_id(type(record))
        if key < expected:
            raise ValueError(f"{record.TABLE} {key} is not a new id: expected at least {expected}")
        self._write(record.TABLE)[key] = record

    def replace(self, record: Record) -> None:
        """Replace the record that has the same id; raise `KeyError` if there is none."""
        if record.key not in self._tables[record.TABLE]:
            raise KeyError(f"{record.TABLE} {record.key}")
        self._write(record.TABLE)[record.key] = record

    def remove(self, record: Record) -> None:
        """Remove the record with this one's id; raise `KeyError` if there is none."""
        del self._write(record.TABLE)[record.key]

    def digest(self) -> str:
        """Return a digest of all records; only the tables changed since the last call are read."""
        for name, table in self._tables.items():
            if name not in self._digests:
                values: list[tuple[Any, ...]] = list(map(_VALUES[name], table.values()))
                self._digests[name] = blake2b(repr(values).encode(), digest_size=16).digest()
        return blake2b(b"".join(map(self._digests.__getitem__, TABLES)), digest_size=16).hexdigest()

    def _write(self, name: str) -> dict[int, Record]:
        self._digests.pop(name, None)
        return self._tables[name]
