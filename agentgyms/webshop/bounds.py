"""What the original draws when it loads: the price of each product, and the bound of each goal."""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

NO_BOUND: Final = 1_000_000.0
"""The bound, in dollars, of a goal whose instruction names none."""

_PRICE_RANGE: Final = [10.0 * i for i in range(1, 100)]
_NUM_CANDIDATES: Final = 4


def draw(
    pricing: NDArray[np.float64], position: NDArray[np.int32], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the price of every product, and the bound of every row of goals, in dollars.

    A product with two prices gets one between them, in the order of the products. Then each row
    gets the larger of two that are sampled of the next four multiples of 10 dollars above the
    price, in the order of the rows; above 970 dollars it gets none. A million products take two
    seconds.

    Args:
        pricing: The price, or the lowest and the highest; NaN where there is no second. [N, 2].
        position: Of the product of each row. [R].
        seed: Of a generator of the standard library, as the original's global one.

    Returns:
        Prices [N] and bounds [R]; `NO_BOUND` where there is none.
    """
    rng = Random(seed)
    price = np.array(pricing[:, 0])
    spread = np.flatnonzero(~np.isnan(pricing[:, 1]))
    low, high = pricing[spread, 0], pricing[spread, 1]
    price[spread] = low + (high - low) * np.array([rng.random() for _ in spread])
    bound = [_bound(above, rng) for above in price[position].tolist()]
    return price, np.array(bound, np.float64)


def _bound(price: float, rng: Random) -> float:
    first = bisect_right(_PRICE_RANGE, price)
    candidates = _PRICE_RANGE[first : first + _NUM_CANDIDATES]
    return max(rng.sample(candidates, 2)) if len(candidates) >= 2 else NO_BOUND
