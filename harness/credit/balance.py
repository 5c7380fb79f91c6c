"""Balanced parts: rows split into equally many parts of nearly equal total length."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from harness.types.hyperparameters import integer

_Part = tuple[int, int, int, list[int]]
"""Total length, number of rows, first row, rows. No row is in two parts: the first three differ."""

_Split = tuple[int, int, int, int, list[_Part]]
"""Some rows in k parts, the greatest first; before them what a heap sorts by, the widest first."""


def partitions(lengths: Sequence[int], parts: int) -> list[list[int]]:
    """Return the rows of each of k parts, ascending: equally many rows, nearly equal total lengths.

    The largest differencing method of Karmarkar and Karp (1982) on tuples of k rows. Rows are taken
    k at a time by length. Then the two tuples whose parts differ most are merged, the greatest part
    of one with the smallest of the other, until one is left.
    Reference: verl's `balance_batch`, ties included. Departs from it: where k does not divide the
    number of rows, rows of length 0 are added and left out of the result; verl refuses this.
    """
    integer("parts", parts, 1)
    count = len(lengths)
    if not count:
        return [[] for _ in range(parts)]
    padded = [*map(int, lengths), *[0] * (-count % parts)]
    rows = sorted(range(len(padded)), key=padded.__getitem__)
    splits = [
        _split([(padded[row], 1, row, [row]) for row in rows[first : first + parts]])
        for first in range(0, len(rows), parts)
    ]
    heapq.heapify(splits)
    while len(splits) > 1:
        widest = heapq.heappop(splits)[-1]
        pairs = zip(widest, reversed(splits[0][-1]), strict=True)
        merged = [(a[0] + b[0], a[1] + b[1], a[2], _merge(a[3], b[3])) for a, b in pairs]
        heapq.heapreplace(splits, _split(merged))
    return [sorted(row for row in part[3] if row < count) for part in splits[0][-1]]


def _split(parts: list[_Part]) -> _Split:
    parts.sort(reverse=True)
    total, num_rows, first, _ = parts[0]
    return parts[-1][0] - total, -total, -num_rows, -first, parts


def _merge(rows: list[int], others: list[int]) -> list[int]:
    """Return the rows of both lists, in any order; the longer list is extended in place."""
    longer, shorter = (rows, others) if len(rows) >= len(others) else (others, rows)
    longer += shorter
    return longer
