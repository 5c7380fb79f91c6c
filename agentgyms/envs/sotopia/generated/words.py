"""Word lists, and functions on words of texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@cache
def _lists() -> Mapping[str, Any]:
    text = files(__package__).joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def word_list(section: str, name: str) -> tuple[str, ...]:
    """Return a list of `words.toml`."""
    found = _lists()[section][name]
    return tuple(found.split() if isinstance(found, str) else found)


@cache
def word_set(section: str, name: str) -> frozenset[str]:
    """Return a list of `words.toml` as a set of words in lower case."""
    return frozenset(word.lower() for word in word_list(section, name))


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def has_word_run(text: str, phrase: str, length: int) -> bool:
    """Return whether a text has `length` consecutive words of a phrase, or all of a shorter one."""
    spoken_words, wanted = words_of(text), words_of(phrase)
    length = min(length, len(wanted))
    runs = {tuple(spoken_words[i : i + length]) for i in range(len(spoken_words) - length + 1)}
    return any(tuple(wanted[i : i + length]) in runs for i in range(len(wanted) - length + 1))


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def join_words(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
