"""Draws that a task makes with a generator of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

from agentgyms.envs.scienceworld.own.random import JavaRandom

T = TypeVar("T")


def shuffled(items: Sequence[T], seed: int) -> list[T]:
    """Return the items in the order that a new generator gives them."""
    return JavaRandom(seed).shuffle(items)


@lru_cache(maxsize=8)
def subsampled(count: int, proportion: float) -> tuple[int, ...]:
    """Return the combinations that the engine picks of the train, dev and test sets of many."""
    ends = [0, int(count * 0.5), int(count * 0.75), count]
    random = JavaRandom(5)
    out: list[int] = []
    for begin, end in pairwise(ends):
        taken = int((end - begin) * proportion)
        out += random.shuffle(range(begin, end))[:taken]
    return tuple(out)
