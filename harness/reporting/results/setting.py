"""The setting of an evaluation: environment, split, partner and judge; warnings about judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

PROGRAMMATIC_JUDGES: Final = ("programmatic-v1",)
"""Judges that are programs; their ratings are not scores of the benchmark."""

_SELF_CHAT: Final = "self"


class Setting(NamedTuple):
    """What the evaluations in one block of a table have in common.

    Attributes:
        name: The environment's name.
        split: The split.
        partner: The partner in the episodes; "" if there is none.
        judge: The judge of the episodes; "" if the environment's own rules score them.
    """

    name: str
    split: str
    partner: str = ""
    judge: str = ""

    @property
    def title(self) -> str:
        """Environment, split, partner and judge as a heading."""
        parts = [f"{self.name} {self.split}".strip()]
        if self.partner:
            in_self_chat = self.partner == _SELF_CHAT
            parts.append("self-chat" if in_self_chat else f"{self.partner} as partner")
        if self.judge:
            parts.append(f"judged by {self.judge}")
        return ", ".join(parts)


def warnings(result: Mapping[str, Any]) -> list[str]:
    """Return the warnings that must stand beside the figures of a `result.json`."""
    if result.get("judge") not in PROGRAMMATIC_JUDGES:
        return []
    return [
        f"NOT A SOTOPIA SCORE: {result['judge']} is a program, which counts by rules of its own"
    ]


def programmatic_heading(heading: str) -> str:
    """Return a column's heading, marked as rated by a program."""
    kind, bracket, rest = heading.partition(" (")
    return f"{kind} (programmatic, {rest}" if bracket else f"{heading} (programmatic)"
