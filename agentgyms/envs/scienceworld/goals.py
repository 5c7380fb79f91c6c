"""Reads the engine's table of a task's goals."""

from __future__ import annotations

import re
from typing import Final

_ROW: Final = re.compile(r"^(\d+)\t(true|false)\t *\S+\t(.*)$", re.MULTILINE)
_OPTIONAL: Final = "Unordered and Optional Subgoals:"


def atoms(table: str) -> dict[str, bool | float]:
    """Return whether each goal is reached: the ordered ones as bool, optional ones as 0 or 1."""
    ordered, _, optional = table.partition(_OPTIONAL)
    reached: dict[str, bool | float] = {
        f"goal {number}: {words.strip()}": holds == "true"
        for number, holds, words in _ROW.findall(ordered)
    }
    for number, holds, words in _ROW.findall(optional):
        reached[f"optional {number}: {words.strip()}"] = float(holds == "true")
    return reached
