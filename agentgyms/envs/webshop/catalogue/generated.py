"""The generated catalogue: 2,400 products of invented brands, the same on every machine.

Products come in families that share a fine category and differ in attributes, price and options,
so that the fine category alone does not decide which one satisfies a goal.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.webshop.catalogue import generated_texts as texts
from agentgyms.envs.webshop.catalogue.generated_table import Kind, Wording, kinds, wording
from agentgyms.envs.webshop.catalogue.generated_texts import Design
from agentgyms.envs.webshop.product import HumanInstruction, Product

GENERATED_VERSION: Final = "generated-1"
"""The version of the products; it changes with every change of a product."""

MAX_COMBINATIONS: Final = 24
"""Most combinations of options, and so synthetic goals, of a product."""

_FAMILY_SIZES: Final = (6, 9, 11, 14)
_BRANDS_PER_CATEGORY: Final = 40
_HUMAN_INTERVAL: Final = 8
"""One product in so many has human-style instructions."""

_ASIN_PREFIX: Final = "B0GEN"
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CENTS: Final = (0, 49, 95, 99)
_BRAND_PARTS: Final = tuple(
    tuple(part.split())
    for part in (
        "b br d dr f fl gl gr h j k kl kr m n p pl r s sk st t tr v vr w y z",
        "a e i o u ae ei ou",
        "l lm n nd r rk rn sk st v",
        "akvist ampto edda embriel eskin ibran iquell ombra ondry orrow undra uskel",
    )
)
_ACCENTS: Final = {"a": "å", "e": "é", "o": "ø", "u": "ü"}


def generated_products() -> Iterator[Product]:
    """Yield every product, always the same ones in the same order."""
    words = wording()
    titles: set[str] = set()
    asins: set[str] = set()
    brands = _brands()
    position = 0
    for number, kind in enumerate(kinds()):
        chance = Chance("webshop", "kind", number)
        for line, size in zip(kind.lines, chance.sample(_FAMILY_SIZES, 4), strict=True):
            line_brands = chance.sample(brands[kind.category], (size + 1) // 2)
            for _ in range(size):
                draw = Chance("webshop", "product", position)
                asin = _asin(draw, asins)
                design, title = _design(kind, line, draw.pick(line_brands), words, draw, titles)
                yield _product(asin, title, design, words, draw, position)
                position += 1


def _product(
    asin: str, title: str, design: Design, words: Wording, draw: Chance, position: int
) -> Product:
    kind = design.kind
    query = texts.plural(design.line, kind.mass)
    options = _options(kind, words, draw)
    wanted: tuple[str, ...] = ()
    instruction = ""
    if draw.below(5) < 3:
        wanted = tuple(draw.sample(design.attributes, draw.between(2, 4)))
        instruction = texts.synthetic_instruction(query, wanted, words, draw)
    # The search indexes the description and the first feature alone; the other features are found
    # on the product's page.
    split = min(draw.between(2, 4), len(design.attributes) - 1)
    featured, described = design.attributes[:split], design.attributes[split:]
    return Product(
        asin=asin,
        title=title,
        description=texts.description(design, described, words, draw),
        bullet_points=texts.bullet_points(design, featured, words, draw),
        category=kind.category,
        query=query,
        product_category=" › ".join((*kind.path, texts.path_name(query))),
        attributes=design.attributes,
        options=options,
        pricing=_pricing(kind, bool(options), draw),
        instruction=instruction,
        instruction_attributes=wanted,
        human=_human(design, options, words, draw) if not position % _HUMAN_INTERVAL else (),
    )


def _design(
    kind: Kind, line: str, brand: str, words: Wording, draw: Chance, titles: set[str]
) -> tuple[Design, str]:
    """Return a design and a title that no other product has."""
    while True:
        series, material = draw.pick(words.series), draw.pick(kind.materials)
        chosen: list[str] = []
        left = list(kind.attributes)
        count = draw.between(3, 6)
        while len(chosen) < count:
            name = left.pop(draw.below(len(left)))
            if words.exclusive.get(name, frozenset()).isdisjoint(chosen):
                chosen.append(name)
        design = Design(
            kind=kind,
            line=line,
            brand=brand,
            series=series,
            material=material,
            attributes=tuple(chosen),
        )
        title = texts.title(design, draw)
        if title not in titles:
            titles.add(title)
            return design, title


def _options(kind: Kind, words: Wording, draw: Chance) -> dict[str, tuple[str, ...]]:
    options: dict[str, tuple[str, ...]] = {}
    for num_later, (name, listed) in zip(
        range(len(kind.options) - 1, -1, -1), kind.options.items(), strict=True
    ):
        room = MAX_COMBINATIONS // prod(map(len, options.values())) // 2**num_later
        pool = words.values[listed]
        count = min(draw.between(2, 8), room, len(pool))
        if draw.below(8) and count > 1:
            chosen = draw.sample(range(len(pool)), count)
            options[name] = tuple(pool[index] for index in sorted(chosen))
    return options


def _pricing(kind: Kind, optional: bool, draw: Chance) -> tuple[float, ...]:
    low, high = kind.price
    # Squared, so that cheap products are more common. Integers are exact on every machine.
    dollars = low + (high - low) * draw.below(1000) ** 2 // 1_000_000
    cents = 100 * dollars + draw.pick(_CENTS)
    if not optional or draw.below(4):
        return (cents / 100,)
    return (cents / 100, (cents + cents * draw.between(20, 90) // 100) / 100)


def _human(
    design: Design, options: dict[str, tuple[str, ...]], words: Wording, draw: Chance
) -> tuple[HumanInstruction, ...]:
    written = []
    for _ in range(draw.between(1, 2)):
        wanted = draw.sample(design.attributes, draw.between(1, 3))
        chosen = [(name, draw.pick(listed)) for name, listed in options.items() if draw.below(4)]
        text = texts.human_instruction(design, wanted, chosen, words, draw)
        values = tuple(value for _, value in chosen)
        written.append(HumanInstruction(text, tuple(wanted), values))
    return tuple(written)


def _asin(draw: Chance, taken: set[str]) -> str:
    while True:
        number = draw.below(36**5)
        digits = (_DIGITS[number // 36**place % 36] for place in range(5))
        asin = _ASIN_PREFIX + "".join(digits)
        if asin not in taken:
            taken.add(asin)
            return asin


def _brands() -> dict[str, list[str]]:
    """Return the brands of each category, which are all different."""
    draw = Chance("webshop", "brands")
    used: set[str] = set()
    brands: dict[str, list[str]] = {kind.category: [] for kind in kinds()}
    for made in brands.values():
        while len(made) < _BRANDS_PER_CATEGORY:
            brand = "".join(draw.pick(part) for part in _BRAND_PARTS)
            if not draw.below(8):
                vowel = next(letter for letter in reversed(brand) if letter in _ACCENTS)
                brand = brand.replace(vowel, _ACCENTS[vowel])
            brand = brand.capitalize()
            if brand not in used:
                used.add(brand)
                made.append(brand)
    return brands
