"""Splits texts into tokens by Unicode's word boundaries (UAX #29), as Lucene's tokenizer."""

from __future__ import annotations

import re
import sys
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import Final

LONGEST_TOKEN: Final = 255
"""Longest token in UTF-16 units; a longer one is split."""

_JOINER: Final = "\u200d"
_TEXT_STYLE, _EMOJI_STYLE, _KEYCAP = "\ufe0e", "\ufe0f", "\u20e3"
_NEVER: Final = f"[^\0-{chr(sys.maxunicode)}]"
_ASCII, _ALL = 0x7F, sys.maxunicode
_CACHED_PARTS: Final = 1 << 14
_MAX_CACHED_LENGTH: Final = 64

# Tokens end at blanks. So only the parts between blanks that have characters beyond ASCII are
# matched with the full classes, which takes ten times as long.
_NON_ASCII: Final = re.compile(r"[^\0-\x7f][^\0- ]*+")


def tokens(text: str) -> list[str]:
    """Return the tokens of a text, unchanged and in order.

    A token is a word with digits, underscores and inner punctuation (`3.5mm_jack`, `o'clock`), one
    ideograph, one hiragana, a run of katakana or of a script without spaces, or one emoji.
    """
    if text.isascii():
        return _tokens(text, _ASCII)
    found: list[str] = []
    at = 0
    for part in _NON_ASCII.finditer(text):
        start = max(at, text.rfind(" ", at, part.start()) + 1)
        found += _tokens(text[at:start], _ASCII)
        non_ascii = text[start : part.end()]
        found += (
            _non_ascii_tokens(non_ascii)
            if len(non_ascii) < _MAX_CACHED_LENGTH
            else _tokens(non_ascii, _ALL)
        )
        at = part.end()
    return found + _tokens(text[at:], _ASCII)


@lru_cache(_CACHED_PARTS)
def _non_ascii_tokens(part: str) -> tuple[str, ...]:
    return tuple(_tokens(part, _ALL))


def _tokens(text: str, last: int) -> list[str]:
    found: list[str] = _any_token(last).findall(text)
    # A character is one or two UTF-16 units.
    if max(map(len, found), default=0) > LONGEST_TOKEN // 2:
        return list(_longest_matches(text, last))
    if "" in found:
        if last > _ASCII:  # a mark after the underscores may begin another token
            return list(_longest_matches(text, last))
        return [token for token in found if token]
    return list(_longest_matches(text, last)) if _JOINER in text else found


def _longest_matches(text: str, last: int) -> Iterator[str]:
    """Yield the longest match at each position, of at most `LONGEST_TOKEN`.

    A regular expression takes its first alternative, wrong where a letter begins an emoji sequence.
    """
    units = list(accumulate((1 + (c > "\uffff") for c in text), initial=0))
    at = 0
    while at < len(text):
        end = bisect_right(units, units[at] + LONGEST_TOKEN) - 1
        matches = [part.match(text, at, end) for part in _word_or_emoji(last)]
        stop = max((match.end() for match in matches if match), default=at)
        if stop > at:
            yield text[at:stop]
        at = max(stop, at + 1)


_CHARACTERS: Final[dict[str, str]] = tomllib.loads(
    (files(__package__) / "word_break.toml").read_text(encoding="utf-8")
)


def _members(*names: str, last: int) -> str:
    """Return the characters of some classes up to a code point, for a bracket expression."""
    ranges = []
    for part in " ".join(_CHARACTERS[name] for name in names).split():
        low, _, high = part.partition("-")
        first, final = int(low, 16), min(int(high or low, 16), last)
        if first <= final:
            ranges.append(f"\\U{first:08x}-\\U{final:08x}")
    return "".join(ranges)


def _characters(*names: str, last: int, but: str = "") -> str:
    """Return an expression for one of these characters up to a code point."""
    members = _members(*names, last=last)
    one = f"[{members}]" if members else _NEVER
    return f"(?:(?![{but}]){one})" if but else one


# The rules are numbered as in UAX #29. Quantifiers of single characters are possessive, so that no
# text makes them slow. Those of groups are not: Python's were wrong before 3.11.5 (gh-106052).


@cache
def _any_token(last: int) -> re.Pattern[str]:
    """Return the pattern of all tokens up to a code point; it finds "" for underscores alone."""
    word, connector = _word(last)
    others = f"[^{_members(*_CHARACTERS, last=last)}#*]*+"
    return re.compile(f"({_simple(last)}|{word}|{_emoji(last)}){others}|{connector}{others}")


def _simple(last: int) -> str:
    """Return the pattern of words without inner punctuation: the fast path for most words."""
    inner = ("digit", "hebrew", "connector", "between_letters", "between_digits")
    end = f"(?!{_characters('letter', *inner, last=last)})"
    return "|".join(
        f"{_characters(first, last=last)}{_characters(first, 'extend', last=last)}*+{end}"
        for first in ("letter", "digit")
    )


@cache
def _word_or_emoji(last: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(_word(last)[0]), re.compile(_emoji(last))


def _word(last: int) -> tuple[str, str]:
    """Return the patterns of words, numbers and ideographs, and of their connector, underscores."""

    def any_of(*names: str) -> str:
        return _characters(*names, last=last)

    letter, hebrew, digit = any_of("letter"), any_of("hebrew"), any_of("digit")
    extend = f"{any_of('extend')}*+"  # WB4
    either = f"{any_of('letter', 'hebrew')}{extend}"
    inner = f"(?:{any_of('between_letters')}{extend}{either})*"  # WB6, WB7
    run = "|".join(
        (
            f"{letter}{any_of('letter', 'extend')}*+{inner}",  # WB5
            f"{digit}{any_of('digit', 'extend')}*+"  # WB8
            f"(?:{any_of('between_digits')}{extend}{digit}{extend})*",  # WB11, WB12
            f"{hebrew}{extend}(?:\"{extend}{hebrew}{extend}|'{extend}|{inner})",  # WB7a to WB7c
        )
    )
    katakana = f"{any_of('katakana')}{any_of('katakana', 'extend')}*+"  # WB13
    part = f"(?:(?:{run})+|{katakana})"  # WB9, WB10
    connector = f"(?:{any_of('connector')}{any_of('connector', 'extend')}*+)"
    alternatives = (
        f"{connector}?{part}(?:{connector}{part})*{connector}?",  # WB13a, WB13b
        f"(?:{any_of('unspaced')}{extend})+",
        f"{any_of('ideograph', 'hiragana')}{extend}",
    )
    return "|".join(alternatives), connector


def _emoji(last: int) -> str:
    """Return the pattern of the emoji sequences of UTS #51: joined, flags, keycaps, tagged."""
    extend = f"{_characters('extend', last=last)}*+"
    within = f"{_characters('extend', last=last, but=_TEXT_STYLE + _EMOJI_STYLE)}*"
    to_key = f"{_characters('extend', last=last, but=_TEXT_STYLE + _EMOJI_STYLE + _KEYCAP)}*"
    pictograph = f"{_characters('pictograph', last=last)}{within}{_EMOJI_STYLE}?+"
    skin_tone = f"{_characters('skin_tone', last=last)}{within}"
    joined = f"(?:{_JOINER}*+(?<={_JOINER}){pictograph}|{_JOINER}{skin_tone})+"
    tagged = "[\U000e0020-\U000e007e]++\U000e007f"
    key = f"{_KEYCAP}{within}"
    flag = f"{_characters('flag', last=last)}{extend}"
    return "|".join(
        (
            f"(?:{_JOINER}*+{pictograph}|{skin_tone})(?:{joined}|{tagged})?",
            f"[0-9#*]{to_key}(?:{key}(?:{_EMOJI_STYLE}{key})?|{_EMOJI_STYLE}{key})",
            f"{flag}{flag}",
        )
    )
