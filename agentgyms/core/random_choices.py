"""Random choices that are the same on every machine and in every version of Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A random generator seeded by a name.

    It uses only `random()` of the standard generator, the one method whose sequence Python
    guarantees.
    """

    def __init__(self, *name: object) -> None:
        """Seed the generator with the parts of `name`."""
        digest = blake2b("/".join(map(str, name)).encode(), digest_size=8).digest()
        self._draw = random.Random(int.from_bytes(digest, "big")).random

    def below(self, limit: int) -> int:
        """Return an integer in [0, limit)."""
        return int(self._draw() * limit)

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high], both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return a random item."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items, or all of them, in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]
