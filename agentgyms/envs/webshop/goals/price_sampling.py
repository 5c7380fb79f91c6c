"""Samples the price of each product and the price bound of each goal, as the original does."""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

NO_BOUND: Final = 1_000_000.0
"""The bound, in dollars, of a goal without a bound."""

_PRICE_RANGE: Final = [10.0 * i for i in range(1, 100)]
_NUM_CANDIDATES: Final = 4


def draw(
    pricing: NDArray[np.float64], position: NDArray[np.int32], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the price of every product [N], and the bound of every row of goals [R], in dollars.

    First, products with two prices get a random one between them, in the order of the products.
    Then each row, in order, samples two of the four next multiples of 10 dollars above the price,
    of which the larger is the bound; above 970 dollars it is `NO_BOUND`. `pricing` [N, 2] has NaN
    where there is no second price; `position` [R] is the product of each row. `seed` is that of
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
