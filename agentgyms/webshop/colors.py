"""Colour words, to which WebShop's reward reduces the values of options."""

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
"""The words of the original, in its order, which is alphabetical."""

_SET: Final = frozenset(COLORS)


@lru_cache(maxsize=8192)
def normalize_color(value: str) -> str:
    """Return the first colour word that the value contains anywhere, or the value itself.

    The order of the words decides, not that of the text: `navy blue` is `blue`. A word counts
    inside others as well: `standard` is `tan`.
    """
    return next((color for color in COLORS if color in value), value)


def normalize_pair(name: str, value: str) -> str:
    """Return what the original's `normalize_color` makes of a pair, as text.

    It looks for a colour word that equals one of the two; otherwise the pair stays, and is compared
    in the way Python writes it: `('size', 'x-large')`.
    """
    return min(({name, value} & _SET), default=str((name, value)))
