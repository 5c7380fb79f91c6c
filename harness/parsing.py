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


ANSWERS: Final = {"plain": "{action}", "tagged": "<think></think><action>{action}</action>"}
"""For each parser the shortest text that it parses to `action`."""

_PARSERS: dict[str, Callable[[str], Parsed]] = {"plain": parse_plain, "tagged": parse_tagged}


def get(name: str) -> Callable[[str], Parsed]:
    """Return a parser by name.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in _PARSERS:
        raise ConfigError(f"unknown parser {name!r}: expected one of {', '.join(_PARSERS)}")
    return _PARSERS[name]
