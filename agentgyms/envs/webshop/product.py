"""The product class, which pages, search and reward use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class HumanInstruction(NamedTuple):
    """One instruction that a person wrote for a product.

    Attributes:
        text: The instruction, as written.
        attributes: The attributes asked for; an instruction without any makes no goal.
        options: The option values to choose, without the names of the options.
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """One product, after the cleaning that WebShop's `load_products` does.

    Attributes:
        asin: Its id, as in the file; at most 10 characters.
        title: Its name.
        description: Its description.
        bullet_points: Its features; the first one is indexed for the search.
        category: One of `beauty`, `electronics`, `fashion`, `garden`, `grocery`.
        query: The fine category, in lower case.
        product_category: The path of categories, separated by ` › `.
        attributes: Its attributes; `DUMMY_ATTR` alone where they are not known.
        options: The values of each option, in the order of the page, all in lower case.
        pricing: One price, or the lowest and the highest, in dollars.
        image: URL of its picture, "" if it has none.
        instruction: The instruction of its synthetic goals, "" if it has none.
        instruction_attributes: The attributes of those goals.
        human: The instructions that people wrote for it.
    """

    asin: str
    title: str
    description: str
    bullet_points: tuple[str, ...]
    category: str
    query: str
    product_category: str
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    pricing: tuple[float, ...]
    image: str = ""
    instruction: str = ""
    instruction_attributes: tuple[str, ...] = ()
    human: tuple[HumanInstruction, ...] = ()

    @property
    def price_text(self) -> str:
        """The price as the pages show it: `$34.0`, or `$5.99 to $12.99`."""
        return " to ".join(f"${price}" for price in self.pricing)
