"""WebShop's comparison of texts, `token_set_ratio` of thefuzz 0.19, and its colour words."""

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

    In Latin-1 only ASCII stays: `café` becomes `caf`, but Chinese stays.
    """
    return _NO_WORD.sub(" ", text.translate(_LATIN_1)).lower().strip()


def similar(one: str, other: str) -> bool:
    """Return whether two processed texts match; a text without words matches none.

    rapidfuzz's ratio is an upper bound of thefuzz's: what it accepts is checked with difflib.
    """
    if not one or not other:
        return False
    bound = fuzz.token_set_ratio(one, other)
    if bound >= _CERTAIN:
        return True
    return round(bound) > THRESHOLD and token_set_ratio(one, other) > THRESHOLD


def token_set_ratio(one: str, other: str) -> int:
    """Return thefuzz's `token_set_ratio` of two processed texts, from 0 to 100."""
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
    """Return the colour word that equals one of the two, else the pair as Python text."""
    return min(({name, value} & _SET), default=str((name, value)))
