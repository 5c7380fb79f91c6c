"""Reads answers that break their format and yet state one action, as a person would read them.

An ambiguous answer stays without an action. Parsers that follow verl-agent's projections do not
mend, and neither do those of the style `compact`, with which the tiny models' figures were
measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from harness.prompts import code_blocks
from harness.prompts.answers import Parsed, element_content, outside_thoughts

_OPENING: Final = re.compile(r"<action>", re.IGNORECASE)
_CLOSING: Final = re.compile(r"</action>", re.IGNORECASE)
_END: Final = re.compile(r"[<\n]|\Z")
_LABEL: Final = re.compile(
    r"(?:(?:my|the|your) )?(?:next )?(?:action|command|move|choice|answer|reply)(?: is)?\s*:\s*"
    r"|please\s+",
    re.IGNORECASE,
)
_AROUND: Final = " \t\r\n\"'`*\u201c\u201d\u2018\u2019.,;:!?"
_SHOP: Final = re.compile(r"\b(?:search|click)\[[^\[\]\n]+\]", re.IGNORECASE)


def stated(text: str, offered: Sequence[str]) -> str:
    """Return the offered action that is all that a text says; "" if there is none, or several.

    Case, blanks, quotes, emphasis, a bullet, punctuation, a label such as `Action:` and the word
    `Please` do not count.
    """
    if text in offered:
        return text
    plain = _plain(text)
    found = {action for action in offered if _plain(action) == plain} if plain else set()
    return found.pop() if len(found) == 1 else ""


def element(parsed: Parsed, text: str, offered: Sequence[str], *, ended: bool) -> Parsed:
    """Return an answer that should have an `<action>` element, mended.

    Without a whole element it is invalid, and its action is

    - after a single `<action>` that is not closed: the rest of its line, if that is not cut off;
    - without tags: an offered action that the whole answer or its first line states, or a single
      line of the kind of an offered one, as `speak: Hello!` is.

    If another line states another offered action, there is none.
    """
    rest = outside_thoughts(text)
    if element_content("action", rest) is not None:
        return Parsed(stated(parsed.action, offered) or parsed.action, parsed.valid)
    opened = _OPENING.split(rest)
    if len(opened) > 2 or _CLOSING.search(rest):
        return parsed
    if len(opened) == 2:
        found = _unclosed(opened[1].strip(), offered, ended=ended)
    else:
        found = _first_line(rest.strip(), offered, ended=ended)
    return Parsed(found, valid=False) if found else parsed


def shop(parsed: Parsed, text: str, offered: Sequence[str], *, ended: bool) -> Parsed:
    """Return WebShop's answer that should have an `<action>` element, mended.

    It is mended as by `element`. Without tags a `search[...]` or `click[...]` that is the only one
    is the action, if it is offered or searches for words of its own.
    """
    rest = outside_thoughts(text)
    mended = element(parsed, text, offered, ended=ended)
    if mended is not parsed or (_OPENING.search(rest) and _CLOSING.search(rest)):
        return mended
    found = {one[0].lower() for one in _SHOP.finditer(rest)}
    action = found.pop() if len(found) == 1 else ""
    known = action in offered or (action.startswith("search[") and action != "search[<query>]")
    return Parsed(action if known else "", valid=False)


def code(
    parsed: Parsed,
    text: str,
    offered: Sequence[str],  # noqa: ARG001 (code is never offered)
    *,
    ended: bool,
) -> Parsed:
    """Return an answer that should have code, mended: a block ends where the model's turn ended."""
    if parsed.action or not ended:
        return parsed
    rest = outside_thoughts(text)
    closed = (code_blocks.first_block(rest + end) for end in ("\n</code>", "\n```"))
    return Parsed(next(filter(None, closed), ""), valid=False)


def _plain(text: str) -> str:
    bare = text.strip(_AROUND).removeprefix("- ")
    label = _LABEL.match(bare)
    return " ".join(bare[label.end() if label else 0 :].strip(_AROUND).casefold().split())


def _unclosed(said: str, offered: Sequence[str], *, ended: bool) -> str:
    end = _END.search(said)
    assert end is not None  # it matches at the end
    line, others = said[: end.start()].strip(), said[end.start() :]
    whole = ended or bool(others)
    found = stated(line, offered)
    if _states_another(others, found, offered):
        return ""
    if found or not whole:
        return _whole(found, offered, whole=whole)
    return line if line.casefold().count(f"{_kind(line)}:") <= 1 or not _kind(line) else ""


def _first_line(said: str, offered: Sequence[str], *, ended: bool) -> str:
    first, _, others = said.partition("\n")
    found = stated(first, offered)
    if _states_another(others, found, offered):
        return ""
    if not found and ended and not others:
        return first if _kind(first) in {_kind(one) for one in offered} - {""} else ""
    return _whole(found, offered, whole=ended or bool(others))


def _states_another(text: str, action: str, offered: Sequence[str]) -> bool:
    """Return whether a line of a text says another action, as lists of what is possible do."""
    return bool({stated(line, offered) for line in text.split("\n")} - {"", action})


def _kind(action: str) -> str:
    """Return `speak` of `speak: Hello!`; "" of an action of another form."""
    kind, colon, _ = action.partition(":")
    return kind.casefold() if colon and kind.isalpha() else ""


def _whole(found: str, offered: Sequence[str], *, whole: bool) -> str:
    """Return an action, or "" if it may be cut off, as `go to shelf 1` from `go to shelf 12`."""
    longer = any(one != found and one.startswith(found) for one in offered)
    return found if whole or not longer else ""
