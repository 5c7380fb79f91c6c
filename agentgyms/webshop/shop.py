"""A shop: its catalogue, its goals and the reward's noun extractor, shared by all episodes."""

from __future__ import annotations

import random
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from agentgyms import keys

if TYPE_CHECKING:
    from agentgyms.webshop.catalogue import Catalogue
    from agentgyms.webshop.goals import Goal, GoalList
    from agentgyms.webshop.nouns import NounExtractor
    from agentgyms.webshop.product import Product
    from agentgyms.webshop.reward import Purchase

SEARCH_RETURNS: Final = 50
"""Products that a search finds at most."""

_PRODUCTS_KEPT: Final = 512
_SEARCHES_KEPT: Final = 256


class Shop:
    """What episodes share; nothing here changes, so that threads may use one shop at once.

    Attributes:
        catalogue: The products and their search.
        goals: What is to be bought, and the products' prices.
        nouns: What the reward takes nouns from titles with.
    """

    def __init__(self, catalogue: Catalogue, goals: GoalList, nouns: NounExtractor) -> None:
        """Keep the parts; the last products and searches are kept in memory."""
        self.catalogue, self.goals, self.nouns = catalogue, goals, nouns
        self._product = lru_cache(_PRODUCTS_KEPT)(catalogue.__getitem__)
        self._search = lru_cache(_SEARCHES_KEPT)(self._found)

    def position(self, asin: str) -> int:
        """Return where the product is in the catalogue.

        Raises:
            LookupError: There is none of this asin.
        """
        position = self.catalogue.position(asin)
        if position is None:
            raise LookupError(f"the catalogue has no product {asin!r:.80}")
        return position

    def product(self, asin: str) -> Product:
        """Return the product.

        Raises:
            LookupError: There is none of this asin.
        """
        return self._product(self.position(asin))

    def products(self, positions: tuple[int, ...]) -> list[Product]:
        """Return the products at these positions of the catalogue."""
        return [self._product(position) for position in positions]

    def search(self, query: str) -> tuple[int, ...]:
        """Return the positions of the best 50 products, the best one first."""
        return self._search(query)

    def random_page(self, task_id: str, draw: int) -> tuple[int, ...]:
        """Return 50 random products, always the same for a task and the number of the draw."""
        generator = random.Random(keys.digest(f"{task_id} {draw}"))
        count = len(self.catalogue)
        return tuple(generator.sample(range(count), min(SEARCH_RETURNS, count)))

    def shelf(self, field: str, value: str) -> tuple[int, ...]:
        """Return all products whose `category` or `query` is this, in the catalogue's order."""
        return self._shelves[field].get(value, ())

    def purchase(self, goal: Goal, asin: str, options: dict[str, str]) -> Purchase:
        """Return what buying this product with these options scores."""
        from agentgyms.webshop.reward import score_purchase

        position = self.position(asin)
        product, price = self._product(position), self.goals.price(position)
        return score_purchase(goal, product, price, options, self.nouns)

    def _found(self, query: str) -> tuple[int, ...]:
        return tuple(self.catalogue.search(query, SEARCH_RETURNS))

    @cached_property
    def _shelves(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """All positions by category and by fine category: one pass over the whole catalogue."""
        shelves: dict[str, dict[str, list[int]]] = {"category": {}, "query": {}}
        for position in range(len(self.catalogue)):
            product = self.catalogue[position]
            shelves["category"].setdefault(product.category, []).append(position)
            shelves["query"].setdefault(product.query, []).append(position)
        return {
            field: {value: tuple(found) for value, found in groups.items()}
            for field, groups in shelves.items()
        }
