"""A table as Markdown, CSV, records for JSON, or aligned text; text of others for Markdown."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows of cells; `escaped` makes cells of Markdown from others' text."""

    headings: Sequence[str]
    rows: Iterable[Sequence[Any]]

    def markdown(self) -> str:
        """Return the table without a newline at its end."""
        lines = (f"| {' | '.join(map(str, row))} |" for row in (self.headings, *self.rows))
        return "\n".join([next(lines), "|---" * len(self.headings) + "|", *lines])

    def csv(self) -> str:
        """Return the table as CSV, floats with all their digits."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows(self.rows)
        return out.getvalue()

    def records(self) -> list[dict[str, Any]]:
        """Return each row as its cells by heading."""
        return [dict(zip(self.headings, row, strict=True)) for row in self.rows]

    def text(self, *forms: str) -> str:
        """Return aligned lines; each column has a format such as `>9`, a row may end early."""
        return "\n".join(
            "".join(f"{cell:{form}}" for cell, form in zip(row, forms, strict=False))
            for row in (self.headings, *self.rows)
        )


def escaped(text: str) -> str:
    """Return text as Markdown shows it, in one line, also inside a table."""
    return re.sub(r"([\\|*`<>\[\]])", r"\\\1", " ".join(text.split()))
