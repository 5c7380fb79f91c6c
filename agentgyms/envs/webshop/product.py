"""The product class, which pages, search and reward use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class HumanInstruction(NamedTuple):
    """A person's instruction (no goal without attributes), and option values without names."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """One product, after the cleaning that WebShop's `load_products` does.

    The asin has at most 10 characters; the first bullet point is searched. `query` is the fine
    category, in lower case; `product_category` is the path, separated by ` › `. `attributes` are
    `DUMMY_ATTR` alone if unknown; option values are in lower case, in the order of the page.
    `pricing` is one price, or the lowest and the highest, in dollars. `image` and `instruction` may
    be "".
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
