"""How alike two texts are: `token_set_ratio` of thefuzz 0.19, which decides WebShop's reward."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from rapidfuzz import fuzz

THRESHOLD: Final = 85
"""Texts match above this ratio."""

_CERTAIN: Final = 100.0
_NO_WORD: Final = re.compile(r"\W")
_LATIN_1: Final = dict.fromkeys(range(0x80, 0x100))


def matches(one: str, other: str) -> bool:
    """Return whether `token_set_ratio` of two texts is above 85."""
    return similar(processed(one), processed(other))


@lru_cache(maxsize=1 << 15)
def processed(text: str) -> str:
    """Return what thefuzz compares of a text: words in lower case, blanks instead of the rest.

    Its removal of characters that are not ASCII takes those of Latin-1 only: `café` is `caf`, and
    Chinese stays.
    """
    return _NO_WORD.sub(" ", text.translate(_LATIN_1)).lower().strip()


def similar(one: str, other: str) -> bool:
    """Return whether two processed texts match; one without words matches none.

    rapidfuzz finds the longest common subsequence, which is never shorter than the blocks that
    thefuzz finds with difflib. So what it rejects is rejected, and what it accepts is asked again.
    """
    if not one or not other:
        return False
    bound = fuzz.token_set_ratio(one, other)
    if bound >= _CERTAIN:
        return True
    return round(bound) > THRESHOLD and token_set_ratio(one, other) > THRESHOLD


def token_set_ratio(one: str, other: str) -> int:
    """Return the ratio of two processed texts, from 0 to 100.

    What the sets of words share is compared with each set, and the sets with each other, written
    with the shared words first; the highest ratio counts.
    """
    words, others = set(one.split()), set(other.split())
    if not words or not others:
        return 0
    shared = " ".join(sorted(words & others))
    first = f"{shared} {' '.join(sorted(words - others))}".strip()
    second = f"{shared} {' '.join(sorted(others - words))}".strip()
    return max(_ratio(shared, first), _ratio(shared, second), _ratio(first, second))


def _ratio(one: str, other: str) -> int:
    if not one or not other:
        return 0
    return round(100 * SequenceMatcher(None, one, other).ratio())
