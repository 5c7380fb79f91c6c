"""Model text to action string, one parser for each way a prompt asks for the answer.

A text without an action gives "": the environment is told in every case and answers with its
feedback, and whether the model was cut off is in its completion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness.errors import ConfigError

_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_APART = re.compile(r"(?<=[a-z]) (?=\d)")
_JOINED = re.compile(r"(?<=[a-z])(?=\d)")


def parse_plain(text: str) -> str:
    """Return the whole text as the action."""
    return text.strip()


def parse_tagged(text: str) -> str:
    """Return what stands in the first `<action>` element that is no part of a thought."""
    found = _ACTION.search(_THOUGHT.sub("", text))
    return found.group(1).strip() if found else ""


def join_names(text: str) -> str:
    """Return a text with names and their numbers joined, `mug 1` to `mug1`: fewer tokens."""
    return _APART.sub("", text)


def parse_joined(text: str) -> str:
    """Return the whole text as the action, names and numbers parted again."""
    return _JOINED.sub(" ", text).strip()


@dataclass(frozen=True, slots=True)
class Parser:
    """A way to ask for an answer.

    Attributes:
        parse: The action in a text.
        write: The shortest text that parses to an action.
    """

    parse: Callable[[str], str]
    write: Callable[[str], str]


PARSERS: Final = {
    "plain": Parser(parse_plain, str),
    "joined": Parser(parse_joined, join_names),
    "tagged": Parser(parse_tagged, "<think></think><action>{}</action>".format),
}


def get(name: str) -> Parser:
    """Return a parser by name.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in PARSERS:
        raise ConfigError(f"unknown parser {name!r}: expected one of {', '.join(PARSERS)}")
    return PARSERS[name]
