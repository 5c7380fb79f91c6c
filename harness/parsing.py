"""Model text to action string, one parser for each way a prompt asks for the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness.errors import ConfigError


class ParseStatus(StrEnum):
    """What parsing made of a text; the environment is told the action in every case."""

    OK = "ok"
    NO_ACTION = "no_action"
    CUT_OFF = "cut_off"


@dataclass(frozen=True, slots=True)
class Parsed:
    """An action and how it was found; the action is "" where none was."""

    action: str
    status: ParseStatus = ParseStatus.OK


def parse_plain(text: str) -> Parsed:
    """Take the whole text as the action."""
    action = text.strip()
    return Parsed(action) if action else Parsed("", ParseStatus.NO_ACTION)


_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)


def parse_tagged(text: str) -> Parsed:
    """Take what stands between the first `<action>` and `</action>` after the thoughts."""
    answer = _THOUGHT.sub("", text)
    found = _ACTION.search(answer)
    if found is None:
        cut_off = "<action>" in answer or ("<think>" in answer and "</think>" not in answer)
        return Parsed("", ParseStatus.CUT_OFF if cut_off else ParseStatus.NO_ACTION)
    return parse_plain(found.group(1))


_APART = re.compile(r"(?<=[a-z]) (?=\d)")
_JOINED = re.compile(r"(?<=[a-z])(?=\d)")


def join_names(text: str) -> str:
    """Return a text with names and their numbers joined, `mug 1` to `mug1`: fewer tokens."""
    return _APART.sub("", text)


def parse_joined(text: str) -> Parsed:
    """Take the whole text as the action and part names and numbers again."""
    return parse_plain(_JOINED.sub(" ", text))


@dataclass(frozen=True, slots=True)
class Parser:
    """A way to ask for an answer.

    Attributes:
        parse: The action in a text.
        write: The shortest text that parses to an action.
    """

    parse: Callable[[str], Parsed]
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
