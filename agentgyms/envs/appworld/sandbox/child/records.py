"""The changes of a world's records since the beginning, as a digest."""

from __future__ import annotations

import re
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

_WRITES = re.compile(
    r"\s*(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE|DELETE\s+FROM)\s+[\"'`]?(\w+)", re.IGNORECASE
)
_INDEX = re.compile(r"_fts(_\w+)?$")
"""Tables of the full-text search, which are derived from the others."""


class Records:
    """Compares the databases of the open world with their initial state.

    Only tables that the engine's logs name are read; a change that was undone makes no difference.
    """

    def __init__(self, home: str, apps: list[str]) -> None:
        """Store the current state as the initial one; `home` has the task's database changes."""
        from appworld.common.utils import import_models_module

        self._home = home
        self._databases = {app: import_models_module(app).SQLModel.db for app in sorted(set(apps))}
        self._num_initial_changes = {
            app: len(db.tracker.changes) for app, db in self._databases.items()
        }
        self._initial_databases: dict[str, sqlite3.Connection] = {}
        self._initial_rows: dict[tuple[str, str], frozenset[str]] = {}

    def digest(self) -> str:
        """Return the sha256 of all added, changed and removed rows; equal rows, equal digest."""
        lines = []
        for app, db in self._databases.items():
            for table in self._changed_tables(app):
                current, initial = rows(db.connection, table), self._initial_table_rows(app, table)
                lines += [f"{app}.{table} + {row}" for row in current - initial]
                lines += [f"{app}.{table} - {row}" for row in initial - current]
        return sha256("\n".join(sorted(lines)).encode()).hexdigest()

    def close(self) -> None:
        """Close the copies of the initial databases."""
        for copy in self._initial_databases.values():
            copy.close()
        self._initial_databases.clear()

    def _changed_tables(self, app: str) -> set[str]:
        statements = {
            statement
            for statement, *_ in self._databases[app].tracker.changes[
                self._num_initial_changes[app] :
            ]
        }
        found = {match.group(1) for match in map(_WRITES.match, statements) if match}
        return {table for table in found if not _INDEX.search(table)}

    def _initial_table_rows(self, app: str, table: str) -> frozenset[str]:
        if (app, table) not in self._initial_rows:
            self._initial_rows[app, table] = rows(self._initial_database(app), table)
        return self._initial_rows[app, table]

    def _initial_database(self, app: str) -> sqlite3.Connection:
        if app not in self._initial_databases:
            copy = sqlite3.connect(":memory:")
            source = sqlite3.connect(f"file:{quote(str(self._base(app)))}?mode=ro", uri=True)
            source.backup(copy)
            source.close()
            for statement, parameters, many in self._initial_changes(app):
                (copy.executemany if many else copy.execute)(statement, parameters)
            copy.commit()
            self._initial_databases[app] = copy
        return self._initial_databases[app]

    def _base(self, app: str) -> Path:
        from appworld.common.path_store import path_store

        own = Path(self._home, f"{app}.db")
        return own if own.exists() else Path(path_store.data, "base_dbs", f"{app}.db")

    def _initial_changes(self, app: str) -> list[tuple[str, Any, bool]]:
        """Return the task's changes of the base database, as logged by the engine."""
        return list(self._databases[app].tracker.changes[: self._num_initial_changes[app]])


def rows(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the rows of a table as strings."""
    query = f'SELECT * FROM "{table}"'  # noqa: S608 (a word, found in the engine's statements)
    return frozenset(map(repr, connection.execute(query)))
