"""Parsers from a model's text to an action string, one for each answer format.

A text without an action gives "", which the environment gets like any action. An answer may break
the required format and still contain an action: it is used, and the turn counts as invalid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from harness.prompts import code_blocks, mending
from harness.prompts.answers import (
    THOUGHT,
    Parsed,
    after_leading_thought,
    element_content,
    outside_thoughts,
    parse_letter,
    write_letter,
)
from harness.prompts.peer_formats import (
    parse_alfworld,
    parse_search,
    parse_sokoban,
    parse_sokoban_action,
    parse_webshop,
    parse_webshop_action,
    write_search,
)
from harness.prompts.tool_calls import ToolParser
from harness.types.errors import ConfigError
from harness.types.hyperparameters import Registry

_SPACED_NUMBER = re.compile(r"(?<=[a-z]) (?=\d)")
_JOINED_NUMBER = re.compile(r"(?<=[a-z])(?=\d)")


def parse_plain(text: str) -> Parsed:
    """Return the text after a leading thought as the action; every text is a valid answer."""
    return Parsed(after_leading_thought(text))


def parse_tagged(text: str) -> Parsed:
    """Return the first `<action>`'s content outside thoughts; valid with a closed `<think>`."""
    found = element_content("action", THOUGHT.sub("", text))
    if found is None:
        return Parsed("", valid=False)
    return Parsed(found.strip(), valid=element_content("think", text) is not None)


def parse_action(text: str) -> Parsed:
    """Return the content of the first `<action>` element outside thoughts; valid if there is one.

    Without the closing tag there is no action: the beginning of a command can be another command,
    as `go to shelf 1` is of `go to shelf 12`.
    """
    found = element_content("action", outside_thoughts(text))
    return Parsed("", valid=False) if found is None else Parsed(found.strip())


@lru_cache(maxsize=8192)
def join_names(text: str) -> str:
    """Return a text without the space between names and numbers, `mug1` for `mug 1`."""
    return _SPACED_NUMBER.sub("", text)


def parse_joined(text: str) -> Parsed:
    """Return the text as the action, with a space between names and numbers; always valid."""
    return Parsed(_JOINED_NUMBER.sub(" ", after_leading_thought(text)))


def parse_code(text: str) -> Parsed:
    """Return the first block's code outside thoughts; valid with a closed `<think>`."""
    action, valid = parse_code_alone(text)
    return Parsed(action, valid=valid and element_content("think", text) is not None)


def parse_code_alone(text: str) -> Parsed:
    """Return the code of the first block outside thoughts; without a closed block there is none."""
    code = code_blocks.first_block(outside_thoughts(text))
    return Parsed(code or "", valid=bool(code))


def write_code(action: str) -> str:
    """Return the `<code>` element of an action after an empty thought."""
    answer = "<think></think>" + code_blocks.element(action)
    if parse_code(answer) != Parsed(action):
        raise _unwritable("code_tags", action)
    return answer


def write_code_alone(action: str) -> str:
    """Return the `<code>` element of an action; see `write_code`."""
    answer = code_blocks.element(action)
    if parse_code_alone(answer) != Parsed(action):
        raise _unwritable("code_action_tags", action)
    return answer


def _unwritable(parser: str, action: str) -> ConfigError:
    return ConfigError(
        f"the parser {parser} cannot write the action {action!r}: expected code without blank "
        "lines at its ends and without </code>, <think> and </think> in it"
    )


class Mender(Protocol):
    """A second look at a text, for what a person would have understood; see `mending`."""

    def __call__(self, parsed: Parsed, text: str, offered: Sequence[str], *, ended: bool) -> Parsed:
        """Return the answer, mended or as it was parsed."""
        ...


@dataclass(frozen=True, slots=True)
class Parser:
    """An answer format: how to parse an action from a text, and how to write one."""

    # Returns the action in a text, and whether the text has the format.
    parser: Callable[..., Parsed]
    writer: Callable[..., str]  # returns the shortest valid text that parses to an action
    # The answer is the letter of a choice; both functions get the choices, too.
    lettered: bool = False
    brief: bool = False  # the answer is a command alone, which is short
    mender: Mender | None = None  # None keeps what `parser` returns, to the letter

    def parse(self, text: str, offered: Sequence[str] = (), *, ended: bool = False) -> Parsed:
        """Return the action in a text.

        `offered` are the choices of the prompt; with `ended` the model ended the text itself, so
        that nothing is cut off.
        """
        parsed = self.parser(text, offered) if self.lettered else self.parser(text)
        return self.mender(parsed, text, offered, ended=ended) if self.mender else parsed

    def write(self, action: str, offered: Sequence[str] = ()) -> str:
        """Return the text of an action; `offered` are the choices of the prompt."""
        return self.writer(action, offered) if self.lettered else self.writer(action)


_ANY_CALL: Final = ToolParser()
_in_tags: Final = "<think></think><action>{}</action>".format
_in_action: Final = "<action>{}</action>".format

PARSERS: Final = {
    "plain": Parser(parse_plain, str, brief=True),
    "joined": Parser(parse_joined, join_names, brief=True),
    "tagged": Parser(parse_tagged, _in_tags, mender=mending.element),
    "action_tags": Parser(parse_action, _in_action, brief=True, mender=mending.element),
    "sokoban_tags": Parser(parse_sokoban, _in_tags),
    "sokoban_action_tags": Parser(
        parse_sokoban_action, _in_action, brief=True, mender=mending.element
    ),
    "search_tags": Parser(parse_search, write_search),
    "webshop_tags": Parser(parse_webshop, _in_tags),
    "webshop_action_tags": Parser(
        parse_webshop_action, _in_action, brief=True, mender=mending.shop
    ),
    "alfworld_tags": Parser(parse_alfworld, _in_tags),
    "code_tags": Parser(parse_code, write_code, mender=mending.code),
    "code_action_tags": Parser(parse_code_alone, write_code_alone, mender=mending.code),
    "lettered": Parser(parse_letter, write_letter, lettered=True, brief=True),
    "tools": Parser(_ANY_CALL.parse, _ANY_CALL.write),
}

_PARSERS: Final = Registry("parser", entries=PARSERS)


def get(name: str) -> Parser:
    """Return a parser by name, or raise `ConfigError`."""
    return _PARSERS.get(name)
