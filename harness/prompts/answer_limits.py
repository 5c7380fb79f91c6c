"""The longest answer where no setting names one."""

from __future__ import annotations

from typing import Final

from harness import prompts

USUAL: Final = 512
"""Tokens of an answer, as in the papers' tables."""


def limit(style: str, env_id: str, *, on_cpu: bool, usual: int = USUAL) -> int:
    """Return the most tokens of an answer; a slow CPU allows half, or an eighth for a command."""
    if not on_cpu:
        return usual
    return usual // (8 if prompts.load(style, env_id).is_brief else 2)
