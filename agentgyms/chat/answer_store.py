"""Answers kept in an SQLite file, which may be damaged, locked or on a full disk: work goes on."""

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
_BUSY_AGAIN_S: Final = 0.05  # all wait in one line: a file that stays locked must not stop the work
_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, digest TEXT)
    WITHOUT ROWID
"""


class AnswerStore:
    """Keeps answers by key; one process may use it in one thread, many processes at once.

    Each answer is on disk as soon as `put` returns, whole or not at all. A file that is damaged is
    moved aside. Where the file cannot be read or written nothing is kept, and a warning says so
    once.

    Args:
        path: Of the file; it is made when it is first needed.

    Attributes:
        kept: Answers that were written.
        damaged: Answers, or whole files, that were not what had been written.
    """

    def __init__(self, path: Path) -> None:
        """Open nothing yet."""
        self.path = path
        self.kept = self.damaged = 0
        self._open: sqlite3.Connection | None = None
        self._inode = 0
        self._warned = False

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the answer that was kept under a key, None for none."""
        return self._tried(lambda: self._get(key))

    def put(self, key: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Keep an answer; return the one that is kept under the key from now on.

        That is another one if another process was quicker: equal keys have equal answers.
        """
        text = json.dumps(answer)
        return self._tried(lambda: self._put(key, text)) or answer

    def forget(self, key: str) -> None:
        """Keep the answer under a key no longer."""
        self._tried(lambda: self._delete(key))

    def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            self._open.close()
        self._open = None

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
        statement = "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)"
        changed = self._connection().execute(statement, (key, text, _digest(key, text)))
        self.kept += changed.rowcount
        return self._get(key)

    def _delete(self, key: str) -> None:
        self._connection().execute("DELETE FROM answers WHERE key = ?", (key,))

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Each statement is a transaction of its own: no lock outlives it, not even a kill.
            busy_s = _BUSY_AGAIN_S if self._warned else _BUSY_S
            self._open = sqlite3.connect(self.path, timeout=busy_s, isolation_level=None)
            self._inode = self.path.stat().st_ino
            self._open.execute("PRAGMA synchronous = NORMAL")
            self._open.execute(_TABLE)
        return self._open

    def _tried(self, work: Callable[[], _T]) -> _T | None:
        """Return what `work` returns; None if the file does not allow it."""
        try:
            return work()
        except (sqlite3.Error, OSError) as e:
            if type(e) is sqlite3.DatabaseError:  # its subclasses say: full, locked, read-only
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
                # What was left of a write belongs to the file: a new one must not be given it.
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
