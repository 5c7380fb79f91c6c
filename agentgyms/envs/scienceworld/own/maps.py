"""Maps that go through their keys in the order of Scala 2.12.9."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, KeysView
from typing import Final, Generic, TypeVar

from agentgyms.envs.scienceworld.own.hashing import scala_hash, slot, tree_order

U = TypeVar("U", bound=Hashable)
V = TypeVar("V")

_SMALL: Final = 4
_MAP_BITS = 4


class MutableMap(Generic[U, V]):
    """A `mutable.Map`, whose buckets are gone through from the last to the first."""

    __slots__ = ("_bits", "_buckets", "_values")

    def __init__(self) -> None:
        self._bits = _MAP_BITS
        self._buckets: list[list[U]] = [
            [] for _ in range(1 << _MAP_BITS)
        ]  # the newest key comes last
        self._values: dict[U, V] = {}

    def __setitem__(self, key: U, value: V) -> None:
        if key not in self._values:
            self._bucket(key).append(key)
            self._values[key] = value
            if len(self._values) > (1 << self._bits) * 750 // 1000:
                self._grow()
        self._values[key] = value

    def _bucket(self, key: U) -> list[U]:
        return self._buckets[slot(scala_hash(key), self._bits, _MAP_BITS)]

    def _grow(self) -> None:
        keys = list(self)
        self._bits += 1
        self._buckets = [[] for _ in range(1 << self._bits)]
        for key in keys:
            self._bucket(key).append(key)

    def __getitem__(self, key: U) -> V:
        return self._values[key]

    def __delitem__(self, key: U) -> None:
        del self._values[key]
        self._bucket(key).remove(key)

    def get(self, key: U, default: V | None = None) -> V | None:
        """Return the value of a key, or the default."""
        return self._values.get(key, default)

    def known(self) -> KeysView[U]:
        """Return the keys in no order that matters."""
        return self._values.keys()

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[U]:
        for bucket in reversed(self._buckets):
            yield from reversed(bucket)

    def keys(self) -> list[U]:
        """Return the keys in order."""
        return list(self)

    def values(self) -> list[V]:
        """Return the values in order."""
        return [self._values[key] for key in self]

    def items(self) -> list[tuple[U, V]]:
        """Return the keys with their values in order."""
        return [(key, self._values[key]) for key in self]

    def __len__(self) -> int:
        return len(self._values)


def frozen_map(pairs: Iterable[tuple[U, V]]) -> dict[U, V]:
    """Return an immutable `Map` of pairs as a dictionary in its order."""
    known = dict(pairs)
    if len(known) <= _SMALL:
        return known
    return {key: known[key] for key in tree_order(known)}
