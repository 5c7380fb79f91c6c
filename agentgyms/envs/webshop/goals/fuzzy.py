"""How WebShop's reward compares texts, and normalizes option values to colour words.

Texts match by `token_set_ratio` of thefuzz 0.19.
"""

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
    """Return the text as thefuzz compares it: lower case, with blanks for all but word characters.

    It removes the characters of Latin-1 that are not ASCII, and no others: `café` is `caf`, and
    Chinese stays.
    """
    return _NO_WORD.sub(" ", text.translate(_LATIN_1)).lower().strip()


def similar(one: str, other: str) -> bool:
    """Return whether two processed texts match; a text without words matches none.

    rapidfuzz finds the longest common subsequence, which is never shorter than the blocks that
    thefuzz finds with difflib. So its ratio is an upper bound: a text that it rejects is rejected,
    and one that it accepts is checked with difflib.
    """
    if not one or not other:
        return False
    bound = fuzz.token_set_ratio(one, other)
    if bound >= _CERTAIN:
        return True
    return round(bound) > THRESHOLD and token_set_ratio(one, other) > THRESHOLD


def token_set_ratio(one: str, other: str) -> int:
    """Return the ratio of two processed texts, from 0 to 100.

    The shared words are compared with each set of words, and the sets with each other, written
    with the shared words first; the highest ratio is returned.
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


_WORDS: Final = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown
    burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee
    cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold
    granite grape graphite grass gray green grey heather indigo ivory ivy khaki lavender lemon
    leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom
    mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal
    rust sand sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal
    tiger turquoise violet walnut wheat white wine yellow
"""

COLORS: Final = tuple(_WORDS.split())
"""The original's colour words, in alphabetical order."""

_SET: Final = frozenset(COLORS)


@lru_cache(maxsize=8192)
def normalize_color(value: str) -> str:
    """Return the first colour word that the value contains anywhere, or the value itself.

    The first word of `COLORS` counts, not the first in the text: `navy blue` is `blue`. A word
    inside another counts as well: `standard` is `tan`.
    """
    return next((color for color in COLORS if color in value), value)


def normalize_pair(name: str, value: str) -> str:
    """Return the result of the original's `normalize_color` for a pair, as text.

    It is the colour word that equals one of the two, or else the text of the pair in Python:
    `('size', 'x-large')`.
    """
    return min(({name, value} & _SET), default=str((name, value)))
