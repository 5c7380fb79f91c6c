"""A shop: its catalogue, its goals and the reward's noun extractor, shared by all episodes."""

from __future__ import annotations

import random
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from agentgyms.core import keys

if TYPE_CHECKING:
    from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
    from agentgyms.envs.webshop.goals.goal_list import Goal, GoalList
    from agentgyms.envs.webshop.goals.nouns import NounExtractor
    from agentgyms.envs.webshop.goals.reward import Purchase
    from agentgyms.envs.webshop.product import Product

MAX_RESULTS: Final = 50

_CACHED_PRODUCTS: Final = 512
_CACHED_SEARCHES: Final = 256


class Shop:
    """The data that all episodes share; immutable and thread-safe."""

    def __init__(self, catalogue: Catalogue, goals: GoalList, nouns: NounExtractor) -> None:
        self.catalogue, self.goals, self.nouns = catalogue, goals, nouns
        self._product = lru_cache(_CACHED_PRODUCTS)(catalogue.__getitem__)
        self._search = lru_cache(_CACHED_SEARCHES)(self._search_uncached)

    def position(self, asin: str) -> int:
        """Return the position of a product in the catalogue; `LookupError` if it has none."""
        position = self.catalogue.position(asin)
        if position is None:
            raise LookupError(f"the catalogue has no product {asin!r:.80}")
        return position

    def product(self, asin: str) -> Product:
        """Return the product; `LookupError` if no product has this asin."""
        return self._product(self.position(asin))

    def products(self, positions: tuple[int, ...]) -> list[Product]:
        """Return the products at these positions of the catalogue."""
        return [self._product(position) for position in positions]

    def search(self, query: str) -> tuple[int, ...]:
        """Return the positions of the best 50 products, the best one first."""
        return self._search(query)

    def random_page(self, task_id: str, draw: int) -> tuple[int, ...]:
        """Return the positions of 50 random products; task and draw number determine them."""
        generator = random.Random(keys.digest(f"{task_id} {draw}"))
        count = len(self.catalogue)
        return tuple(generator.sample(range(count), min(MAX_RESULTS, count)))

    def products_with(self, field: str, value: str) -> tuple[int, ...]:
        """Return the positions of the products with this `category` or `query`, ascending."""
        return self._positions_by_field[field].get(value, ())

    def purchase(self, goal: Goal, asin: str, options: dict[str, str]) -> Purchase:
        """Return the score of buying this product with these options."""
        from agentgyms.envs.webshop.goals.reward import score_purchase

        position = self.position(asin)
        product, price = self._product(position), self.goals.price(position)
        return score_purchase(goal, product, price, options, self.nouns)

    def _search_uncached(self, query: str) -> tuple[int, ...]:
        return tuple(self.catalogue.search(query, MAX_RESULTS))

    @cached_property
    def _positions_by_field(self) -> dict[str, dict[str, tuple[int, ...]]]:
        positions: dict[str, dict[str, list[int]]] = {"category": {}, "query": {}}
        for position in range(len(self.catalogue)):
            product = self.catalogue[position]
            positions["category"].setdefault(product.category, []).append(position)
            positions["query"].setdefault(product.query, []).append(position)
        return {
            field: {value: tuple(found) for value, found in groups.items()}
            for field, groups in positions.items()
        }
