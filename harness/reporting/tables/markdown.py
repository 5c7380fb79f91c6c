"""Markdown: tables, and text that is shown as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without a newline at its end.

    Args:
        headings: One per column.
        rows: Cells from left to right; see `escaped` for cells with text of others.
    """
    return "\n".join([_line(headings), "|---" * len(headings) + "|", *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Return text as Markdown shows it, in one line, also inside a table."""
    return re.sub(r"([\\|*`<>\[\]])", r"\\\1", " ".join(text.split()))
