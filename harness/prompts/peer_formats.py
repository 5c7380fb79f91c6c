"""Parsers of answers in the formats of verl-agent's environments, as its projections parse them."""

from __future__ import annotations

import re
from typing import Final

from harness.prompts.answers import Parsed, element_content, outside_thoughts
from harness.types.errors import ConfigError

_SOKOBAN_WORDS: Final = ("up", "down", "left", "right", "still")
_SEARCH_KINDS: Final = ("search", "answer")
_SEARCH_ACTION = re.compile(r"(search|answer)\[(.*)\]", re.DOTALL)
_WEBSHOP_TAIL: Final = 20
_ALFWORLD_TAIL: Final = 30
_CHINESE = re.compile("[\u4e00-\u9fff]")


def parse_sokoban(text: str) -> Parsed:
    """Return the word of a move, as verl-agent's `sokoban_projection` parses it.

    The text between the first `<action>` and the first `</action>`, in any case, is searched for
    `up`, `down`, `left`, `right` and `still`, in this order and within words too: "left then up"
    and "cupboard" are `up`. Without a word the answer is invalid and there is no action. An answer
    without both `<think>` and `</think>`, in lower case, is invalid but its action is used.
    """
    word = _sokoban_move(text)
    return _after_thought(text, Parsed(word, valid=bool(word)))


def parse_sokoban_action(text: str) -> Parsed:
    """Return the word of a move, found as `parse_sokoban` does; valid if there is one."""
    word = _sokoban_move(outside_thoughts(text))
    return Parsed(word, valid=bool(word))


def _sokoban_move(text: str) -> str:
    lowered = text.lower()
    start, end = lowered.find("<action>"), lowered.find("</action>")
    if start < 0 or end < 0:
        return ""
    inside = lowered[start + len("<action>") : end]
    return next((word for word in _SOKOBAN_WORDS if word in inside), "")


def parse_search(text: str) -> Parsed:
    """Return `search[...]` or `answer[...]`, as verl-agent's `search_projection` parses it.

    The text is cut after its first `</search>`, or without one after its first `</answer>`. The
    first `<search>` element before the cut is the action, else the first `<answer>` element, in any
    case. The answer is invalid if there is none, or if the text opens both kinds or one twice.
    """
    closing = next((tag for tag in ("</search>", "</answer>") if tag in text), "")
    read = text[: text.index(closing) + len(closing)] if closing else text
    opened = [len(re.findall(f"<{kind}>", text, re.IGNORECASE)) for kind in _SEARCH_KINDS]
    for kind in _SEARCH_KINDS:
        content = element_content(kind, read)
        if content is not None:
            return Parsed(f"{kind}[{content.strip()}]", valid=sum(opened) == 1)
    return Parsed("", valid=False)


def write_search(action: str) -> str:
    """Return the `<search>` or `<answer>` element of `search[...]` or `answer[...]`."""
    found = _SEARCH_ACTION.fullmatch(action)
    if found is None:
        raise ConfigError(
            f"the parser search_tags cannot write the action {action!r}: expected search[...] or "
            "answer[...]"
        )
    kind, content = found.groups()
    return f"<{kind}>{content}</{kind}>"


def parse_webshop(text: str) -> Parsed:
    """Return the action in lower case, as verl-agent's `webshop_projection` parses it.

    It is the text between the first `<action>` and the first `</action>`, in any case; if a tag is
    missing, it is the last 20 characters, and the answer invalid. So is an answer without both
    `<think>` and `</think>`, in lower case, or with a Chinese character.
    """
    return _after_thought(text, _lowered_action(text, _WEBSHOP_TAIL))


def parse_webshop_action(text: str) -> Parsed:
    """Return the action in lower case, as `parse_webshop` does; a thought is not required."""
    return _lowered_action(outside_thoughts(text), _WEBSHOP_TAIL)


def parse_alfworld(text: str) -> Parsed:
    """Return the action as `alfworld_projection` does: as `parse_webshop`, but 30 characters."""
    return _after_thought(text, _lowered_action(text, _ALFWORLD_TAIL))


def _lowered_action(text: str, tail: int) -> Parsed:
    lowered = text.lower()
    start, end = lowered.find("<action>"), lowered.find("</action>")
    if start < 0 or end < 0:
        return Parsed(lowered[-tail:], valid=False)
    action = lowered[start + len("<action>") : end].strip()
    return Parsed(action, valid=not _CHINESE.search(text))


def _after_thought(text: str, parsed: Parsed) -> Parsed:
    thinks = "<think>" in text and "</think>" in text
    return Parsed(parsed.action, parsed.valid and thinks)
