"""Ranks and their correlations, of rows that may count several times, and within parts."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from harness.types.arrays import Floats, Ints

EQUAL: Final = 1e-9
"""Share of a vector's largest size by which equal values may differ: rounding, with a margin."""
_TINY: Final = 1e-12


class Ranks:
    """Ranks of values where rows may count several times; equal values have their mean rank."""

    def __init__(self, values: Floats) -> None:
        self._place = places(values)

    def of(self, rows: Floats) -> Floats:
        """Return the ranks, given how often each row counts. Shape [N]."""
        counts = np.bincount(self._place, weights=rows)
        ranks: Floats = (counts.cumsum() - (counts - 1) / 2)[self._place]
        return ranks


def places(values: Floats) -> Ints:
    """Return the place of each value [N] among the different values; rounding noise is ignored.

    Values are equal within `EQUAL` times the largest size. Each group of equals starts at its
    smallest value, so a long run of tiny steps does not become one place.
    """
    limit = EQUAL * float(np.abs(values).max(initial=0.0))
    distinct, place = np.unique(values, return_inverse=True)
    begins = np.diff(distinct, prepend=-np.inf) > limit
    starts = np.flatnonzero(begins)
    ends = np.append(starts, len(distinct))[1:]
    wide = distinct[ends - 1] - distinct[starts] > limit
    for start, end in zip(starts[wide], ends[wide], strict=True):
        while start < end and distinct[end - 1] - distinct[start] > limit:
            start += int(np.searchsorted(distinct[start:end], distinct[start] + limit, "right"))
            begins[start] = True
    found: Ints = (begins.cumsum() - 1)[place.reshape(-1)].astype(np.int64)
    return found


def signs(values: Floats) -> Floats:
    """Return -1, 0 or 1; 0 for values of at most `EQUAL` times the largest size."""
    limit = EQUAL * float(np.abs(values).max(initial=0.0))
    found: Floats = np.where(np.abs(values) <= limit, 0.0, np.sign(values))
    return found


def correlation(one: Floats, two: Floats, weights: Floats) -> float:
    """Return the weighted Pearson correlation: nan if `one` is constant, else 0 if `two` is."""
    total = weights.sum()
    one = one - (one * weights).sum() / total
    two = two - (two * weights).sum() / total
    spread = (one**2 * weights).sum(), (two**2 * weights).sum()
    if spread[0] <= _TINY:
        return math.nan
    if spread[1] <= _TINY:
        return 0.0
    return float((one * two * weights).sum() / math.sqrt(spread[0] * spread[1]))


def ranks_within(part: Ints, values: Floats) -> Floats:
    """Return the mean ranks of values among those of their part. Shape [N]."""
    place = places(values)
    cell = part * (place.max(initial=0) + 1) + place
    _, first, cells, counts = np.unique(
        cell, return_index=True, return_inverse=True, return_counts=True
    )
    sizes = np.bincount(part)
    before = counts.cumsum() - counts - (sizes.cumsum() - sizes)[part[first]]
    ranks: Floats = (before + (counts + 1) / 2)[cells]
    return ranks


def correlations_within(one: Floats, two: Floats, part: Ints) -> Floats:
    """Return Pearson's correlation of each part, with the rules of `correlation`. Shape [parts]."""
    sizes = np.bincount(part)

    def centred(values: Floats) -> Floats:
        centred: Floats = values - (np.bincount(part, weights=values) / sizes)[part]
        return centred

    one, two = centred(one), centred(two)  # [N]
    one_square, two_square, both = (
        np.bincount(part, weights=product) for product in (one * one, two * two, one * two)
    )
    # [parts] each; a square of rounding noise counts as 0, so constant rows stay constant.
    found = both / np.sqrt(np.maximum(one_square * two_square, _TINY))
    return np.where(one_square <= _TINY, np.nan, np.where(two_square <= _TINY, 0.0, found))
