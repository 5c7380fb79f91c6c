"""The goal as bit masks over a state, for each choice of objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Wanted(NamedTuple):
    """One kind of literal of the goal: at least `need` of the facts in `bits` must hold."""

    bits: int
    need: int


@dataclass(frozen=True, slots=True)
class Aim:
    """The goal as bit masks: every part must hold in at least one of its ways.

    `total` is the number of literals that must hold together; `watched` are all bits that count.
    """

    parts: tuple[tuple[tuple[Wanted, ...], ...], ...]
    total: int
    watched: int

    def reached(self, state: int) -> int:
        """Return the number of goal literals that hold, for the best choice of objects."""
        total = 0
        for ways in self.parts:
            best = 0
            for way in ways:
                hold = 0
                for bits, need in way:
                    count = (state & bits).bit_count()
                    hold += count if count < need else need
                best = hold if hold > best else best
            total += best
        return total


def aim_at(*parts: Iterable[Iterable[Wanted]]) -> Aim:
    """Return the aim that is reached when every part is, in one of its ways.

    The ways of one part want equally many literals.
    """
    ways = tuple(tuple(tuple(way) for way in part) for part in parts)
    watched = 0
    for wanted in (wanted for part in ways for way in part for wanted in way):
        watched |= wanted.bits
    needs = [sum(wanted.need for wanted in part[0]) if part else 1 for part in ways]
    return Aim(ways, sum(needs), watched)
