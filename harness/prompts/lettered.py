"""Answers that are the letter of a choice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from harness.prompts.answers import Parsed, after_leading_thought
from harness.types.errors import ConfigError

_PLACEHOLDER = re.compile(r"(?<=\[)<\w+>(?=\]$)|(?<=: )<\w+>$")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def choices(actions: Sequence[str], goal: str) -> list[str]:
    """Return the actions to choose from by letter: the admissible ones, without placeholders.

    The goal replaces a placeholder, as in `search[<query>]` or `speak: <words>`.
    """
    return [_PLACEHOLDER.sub(lambda _: goal, one) if "<" in one else one for one in actions]


def letter(index: int) -> str:
    """Return the letters of a choice: A to Z, then AA, AB..., as a spreadsheet's columns."""
    name = ""
    while index >= 0:
        index, digit = divmod(index, len(_LETTERS))
        name, index = _LETTERS[digit] + name, index - 1
    return name


def parse_letter(text: str, offered: Sequence[str]) -> Parsed:
    """Return the offered action of a letter; any other text is invalid and no action."""
    name = after_leading_thought(text)
    named = {letter(i): action for i, action in enumerate(offered)}
    return Parsed(named[name]) if name in named else Parsed("", valid=False)


def write_letter(action: str, offered: Sequence[str]) -> str:
    """Return the letter of an offered action.

    An action that is not offered counts as the only offered one of its kind, the word before the
    bracket: any `search[...]` is the offered search. Raises `ConfigError` if it is not offered, and
    none or several offered actions are of its kind.
    """
    same = [i for i, other in enumerate(offered) if other.casefold() == action.casefold()]
    kind = action.partition("[")[0].casefold()
    same_kind = [i for i, other in enumerate(offered) if other.partition("[")[0].casefold() == kind]
    if same or len(same_kind) == 1:
        return letter((same or same_kind)[0])
    raise ConfigError(
        f"the parser lettered cannot write the action {action!r}: expected one of "
        f"{', '.join(offered)}"
    )
