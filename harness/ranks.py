"""The processes that train together, one per GPU: their number, and what they exchange.

Started by `torchrun`; without it there is one process, and every exchange gives back what it got.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together.

    Attributes:
        rank: Its number, from 0.
        size: How many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this one writes files and speaks to people."""
        return self.rank == 0

    def share(self, items: Sequence[_T]) -> Sequence[_T]:
        """Return this process's part of what all of them know."""
        return items[self.rank :: self.size]


ALONE = Ranks()
"""One process."""
