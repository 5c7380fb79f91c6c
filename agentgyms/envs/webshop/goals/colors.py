"""Normalizes option values to colour words, as WebShop's reward does."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

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
