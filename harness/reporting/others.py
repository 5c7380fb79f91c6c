"""What was played, and who else had a part in it: the partner and the judge of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

PROGRAMS: Final = ("programmatic-v1",)
"""Judges that are programs: what they count is no score of the benchmark."""

_SELF: Final = "self"


class Setting(NamedTuple):
    """What evaluations have in common that are compared in a table.

    Attributes:
        name: The environment's name.
        split: The split.
        partner: Who had another part in the episodes, "" for nobody.
        judge: Who rated them, "" for the environment's own rules.
    """

    name: str
    split: str
    partner: str = ""
    judge: str = ""

    @property
    def title(self) -> str:
        """All of it in words."""
        told = [f"{self.name} {self.split}".strip()]
        if self.partner:
            met = self.partner == _SELF
            told.append("self-chat" if met else f"{self.partner} as partner")
        if self.judge:
            told.append(f"judged by {self.judge}")
        return ", ".join(told)


def warnings(result: Mapping[str, Any]) -> list[str]:
    """Return what nobody may overlook who reads the figures of a `result.json`."""
    if result.get("judge") not in PROGRAMS:
        return []
    return [
        f"NOT A SOTOPIA SCORE: {result['judge']} is a program, which counts by rules of its own"
    ]


def counted(heading: str) -> str:
    """Return the heading of a column that a program filled."""
    kind, bracket, rest = heading.partition(" (")
    return f"{kind} (programmatic, {rest}" if bracket else f"{heading} (programmatic)"
