"""Answers of models: their thoughts, elements, letters of choices, and the result of parsing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from harness.types.errors import ConfigError

THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_UNOPENED_THOUGHT = re.compile(r"^.*</think>", re.DOTALL | re.IGNORECASE)


class Parsed(NamedTuple):
    """The result of parsing a model's text."""

    action: str  # the action for the environment; "" if there is none
    # The answer has the required format. Otherwise credit counts the turn as invalid, whatever the
    # environment's feedback.
    valid: bool = True


def element_content(name: str, text: str) -> str | None:
    """Return the content of the first closed element of a name, in any case; None without one.

    A single regular expression would search for the end after every opening tag: this takes minutes
    for an answer that repeats `<action>`.
    """
    opening = re.search(f"<{name}>", text, re.IGNORECASE)
    if opening is None:
        return None
    closing = re.compile(f"</{name}>", re.IGNORECASE).search(text, opening.end())
    return text[opening.end() : closing.start()] if closing else None


def outside_thoughts(text: str) -> str:
    """Return a text without its thoughts.

    A thought is a `<think>` element, all text after an unclosed `<think>`, and all text before an
    unopened `</think>`: some chat templates open the first thought in the prompt.
    """
    return _UNOPENED_THOUGHT.sub("", THOUGHT.sub("", text))


def mask_thoughts(text: str) -> str:
    """Return a text of the same length with another character in place of all of its thoughts."""
    masked = THOUGHT.sub(lambda found: "\0" * len(found[0]), text)
    return _UNOPENED_THOUGHT.sub(lambda found: "\0" * len(found[0]), masked)


def has_thoughts(text: str) -> bool:
    """Return whether a text has the tag of a thought."""
    return "<think>" in text or "</think>" in text


def after_thoughts(text: str) -> str:
    """Return the text after the last thought, as chat templates do, or before an open thought."""
    rest = text.rpartition("</think>")[2]
    return rest.partition("<think>")[0].lstrip("\n")


def after_leading_thought(text: str) -> str:
    """Return a text without the `<think>` element that it begins with; "" if that is not closed."""
    stripped = text.strip()
    if not stripped.startswith("<think>"):
        return stripped
    return stripped.partition("</think>")[2].strip()


_PLACEHOLDER = re.compile(r"(?<=\[)<\w+>(?=\]$)|(?<=: )<\w+>$")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def choices(actions: Sequence[str], goal: str) -> list[str]:
    """Return the actions to choose from by letter, with the goal in place of a `<placeholder>`."""
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
    """Return the letter of an offered action, or of the only offered one of its kind.

    The kind is the word before the bracket: any `search[...]` is the offered search. Raises
    `ConfigError` if it is not offered, and none or several offered actions are of its kind.
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
