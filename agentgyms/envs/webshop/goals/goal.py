"""Goals, the parts of their instructions, and their prices, sampled as the original does."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agentgyms.envs.webshop.product import Product


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal: the product to buy, and its required attributes, options and price.

    The id is `<asin>/<number of the option combination>` or `<asin>/human-<number>`. `query` is the
    fine category, the family the category. `price_upper`, in dollars, is a million without a bound.
    `goal_options` are values alone in a human goal. The original samples with `weight`.
    """

    task_id: str
    position: int
    asin: str
    category: str
    query: str
    name: str
    product_category: str
    instruction_text: str
    attributes: tuple[str, ...]
    price_upper: float
    goal_options: Mapping[str, str] | tuple[str, ...]
    weight: float

    @property
    def option_values(self) -> tuple[str, ...]:
        """The values of the required options."""
        options = self.goal_options
        return options if isinstance(options, tuple) else tuple(options.values())


def combination(product: Product, n: int) -> dict[str, str]:
    """Return the n-th combination of the options, sorted by name; the last one varies fastest."""
    chosen = {}
    for name in sorted(product.options, reverse=True):
        n, which = divmod(n, len(product.options[name]))
        chosen[name] = product.options[name][which]
    return dict(reversed(chosen.items()))


def option_text(options: Mapping[str, str]) -> str:
    """Return the part of a synthetic instruction that names its options."""
    text = ", and ".join(f"{name}: {value}" for name, value in options.items())
    return f" with {text}" if text else ""


def bound_text(bound: float) -> str:
    """Return the part of an instruction that names its highest price, in dollars."""
    return "" if bound == NO_BOUND else f", and price lower than {bound:.2f} dollars"


NO_BOUND: Final = 1_000_000.0
"""The bound, in dollars, of a goal without a bound."""

_PRICE_RANGE: Final = [10.0 * i for i in range(1, 100)]
_NUM_CANDIDATES: Final = 4


def draw_prices(
    pricing: NDArray[np.float64], position: NDArray[np.int32], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the price of every product [N], and the bound of every row of goals [R], in dollars.

    First, products with two prices get a random one between them, in the order of the products.
    Then each row, in order, samples two of the four next multiples of 10 dollars above the price.
    The larger one is the bound; above 970 dollars it is `NO_BOUND`. `pricing` [N, 2] has NaN where
    there is no second price; `position` [R] is the product of each row. `seed` is that of
    `random.Random`; the original seeds the global generator.
    """
    rng = Random(seed)
    price = np.array(pricing[:, 0])
    spread = np.flatnonzero(~np.isnan(pricing[:, 1]))
    low, high = pricing[spread, 0], pricing[spread, 1]
    price[spread] = low + (high - low) * np.array([rng.random() for _ in spread])
    # The order of draws is the original's: all prices, then all bounds.
    bound = [_bound(above, rng) for above in price[position].tolist()]
    return price, np.array(bound, np.float64)


def _bound(price: float, rng: Random) -> float:
    first = bisect_right(_PRICE_RANGE, price)
    candidates = _PRICE_RANGE[first : first + _NUM_CANDIDATES]
    return max(rng.sample(candidates, 2)) if len(candidates) >= 2 else NO_BOUND
