"""Planned records: what the databases of the generated world will hold, before any is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


class Records:
    """Rows by model (`app.Model`), with the ids that they get when they are saved in order."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}

    def add(self, model: str, **fields: Any) -> Row:
        """Plan a row of a model and return it, with its id."""
        rows = self._rows.setdefault(model, [])
        rows.append({"id": len(rows) + 1, **fields})
        return rows[-1]

    def of(self, model: str, **equal: Any) -> list[Row]:
        """Return the rows of a model whose fields equal the given ones, in order of their ids."""
        return [
            row
            for row in self._rows.get(model, [])
            if all(row[name] == value for name, value in equal.items())
        ]

    def one(self, model: str, **equal: Any) -> Row:
        """Return the only row of a model whose fields equal the given ones."""
        (row,) = self.of(model, **equal)
        return row

    def models(self) -> Iterable[tuple[str, list[Row]]]:
        """Return models and their rows; a model comes after those that it refers to."""
        return self._rows.items()
