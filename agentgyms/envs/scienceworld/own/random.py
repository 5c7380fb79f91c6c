"""The generator of Java, with the methods that Scala gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


class JavaRandom:
    """Draws as `java.util.Random` does from the same seed; `state` has its 48 bits."""

    __slots__ = ("state",)

    def __init__(self, seed: int = 0) -> None:
        self.state = 0
        self.set_seed(seed)

    def set_seed(self, seed: int) -> None:
        """Start again from a seed."""
        self.state = (seed ^ _MULTIPLIER) & _MASK

    def _next(self, bits: int) -> int:
        """Return the upper bits of the next state as a signed 32-bit integer."""
        self.state = (self.state * _MULTIPLIER + 0xB) & _MASK
        drawn = self.state >> (48 - bits)
        return drawn - (1 << 32) if bits == 32 and drawn >= 1 << 31 else drawn

    def skip(self, count: int) -> None:
        """Run on as if as many numbers had been drawn, of which each takes one step.

        A draw below a bound that is no power of two takes more steps, but about once in 10**9.
        """
        factor, summand = _MULTIPLIER, 0xB
        while count:
            if count & 1:
                self.state = (self.state * factor + summand) & _MASK
            summand = (factor + 1) * summand & _MASK
            factor = factor * factor & _MASK
            count >>= 1

    def is_regular(self, count: int, bound: int) -> bool:
        """Tell whether each of the next draws below any bound up to this one takes one step."""
        state, limit = self.state, ((1 << 31) - bound) << 17
        for _ in range(count):
            state = (state * _MULTIPLIER + 0xB) & _MASK
            if state >= limit:
                return False
        return True

    def next_int(self, bound: int | None = None) -> int:
        """Return any 32-bit integer, or one from 0 to below the bound."""
        if bound is None:
            return self._next(32)
        if bound <= 0:
            raise ValueError("bound must be positive")
        drawn = self._next(31)
        highest = bound - 1
        if bound & highest == 0:
            return (bound * drawn) >> 31
        rest = drawn % bound
        while drawn - rest + highest >= 1 << 31:
            drawn = self._next(31)
            rest = drawn % bound
        return rest

    def next_long(self) -> int:
        """Return any 64-bit integer."""
        drawn = ((self._next(32) << 32) + self._next(32)) & ((1 << 64) - 1)
        return drawn - (1 << 64) if drawn >= 1 << 63 else drawn

    def next_boolean(self) -> bool:
        """Return a truth value."""
        return self._next(1) != 0

    def next_double(self) -> float:
        """Return a double from 0 to below 1."""
        return ((self._next(26) << 27) + self._next(27)) * 2.0**-53

    def next_float(self) -> float:
        """Return a float from 0 to below 1, which a double holds exactly."""
        return self._next(24) / (1 << 24)

    def shuffle(self, items: Sequence[T]) -> list[T]:
        """Return the items in a new order, the one that `scala.util.Random.shuffle` gives."""
        mixed = list(items)
        for size in range(len(mixed), 1, -1):
            chosen = self.next_int(size)
            mixed[size - 1], mixed[chosen] = mixed[chosen], mixed[size - 1]
        return mixed
