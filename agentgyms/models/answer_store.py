"""A cache of answers in an SQLite file; a damaged, locked or full file does not stop the caller."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_BUSY_S: Final = 30.0
_BUSY_AFTER_WARNING_S: Final = 0.05  # short: a locked file must not block all requests
_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, digest TEXT)
    WITHOUT ROWID
"""


class AnswerStore:
    """Stores answers by key in a file, for many processes at once, with one thread in each.

    A damaged file is renamed. If the file cannot be read or written, nothing is stored, and one
    warning is logged. `num_written` and `damaged` count answers, and damaged answers or files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_written = self.damaged = 0
        self._database: sqlite3.Connection | None = None
        self._inode = 0
        self._warned = False

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the answer stored under a key, or None."""
        return self._guarded(lambda: self._get(key))

    def put(self, key: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Store an answer atomically; return the stored one, which may be of another process."""
        text = json.dumps(answer)
        return self._guarded(lambda: self._put(key, text)) or answer

    def forget(self, key: str) -> None:
        """Delete the answer stored under a key."""
        self._guarded(lambda: self._delete(key))

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()
        self._database = None

    def _get(self, key: str) -> dict[str, Any] | None:
        query = "SELECT answer, digest FROM answers WHERE key = ?"
        row = self._connection().execute(query, (key,)).fetchone()
        if row is None:
            return None
        text, digest = row
        if digest != _digest(key, text):
            self.damaged += 1
            self._delete(key)
            return None
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _put(self, key: str, text: str) -> dict[str, Any] | None:
        # the first answer stays, so that all processes read the same one
        statement = "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)"
        changed = self._connection().execute(statement, (key, text, _digest(key, text)))
        self.num_written += changed.rowcount
        return self._get(key)

    def _delete(self, key: str) -> None:
        self._connection().execute("DELETE FROM answers WHERE key = ?", (key,))

    def _connection(self) -> sqlite3.Connection:
        if self._database is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Each statement is a transaction of its own: no lock outlives it, not even a kill.
            busy_s = _BUSY_AFTER_WARNING_S if self._warned else _BUSY_S
            self._database = sqlite3.connect(self.path, timeout=busy_s, isolation_level=None)
            self._inode = self.path.stat().st_ino
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_TABLE)
        return self._database

    def _guarded(self, work: Callable[[], _T]) -> _T | None:
        """Return the result of `work`; None if the file cannot be used."""
        try:
            return work()
        except (sqlite3.Error, OSError, UnicodeDecodeError) as e:
            # Subclasses mean: full, locked, read-only. A damaged table is quoted in its error.
            if type(e) in (sqlite3.DatabaseError, UnicodeDecodeError):
                self.damaged += 1
                self._move_aside(e)
            else:
                self._warn(f"answers are not kept in {self.path}: {e}")
        self.close()
        return None

    def _move_aside(self, error: Exception) -> None:
        self.close()
        aside = self.path.with_name(f"{self.path.name}.damaged-{self._inode}")
        try:
            if self.path.stat().st_ino == self._inode:  # else another process has moved it
                self.path.replace(aside)
                # The journal of an interrupted write belongs to the old file, not to a new one.
                self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)
            _log.warning("%s is damaged (%s) and was moved to %s", self.path, error, aside)
        except OSError as e:
            self._warn(f"{self.path} is damaged ({error}) and cannot be moved aside: {e}")

    def _warn(self, message: str) -> None:
        if not self._warned:
            _log.warning("%s", message)
        self._warned = True


def _digest(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()[:16]
