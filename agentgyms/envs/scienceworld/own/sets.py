"""Sets that go through their members in the order of Scala 2.12.9."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from agentgyms.envs.scienceworld.own.hashing import scala_hash, slot, text_order, tree_order
from agentgyms.envs.scienceworld.own.maps import MutableMap, frozen_map

__all__ = [
    "FrozenSet",
    "MutableMap",
    "MutableSet",
    "ObjectSet",
    "distinct",
    "frozen_map",
    "settled",
    "union",
]

T = TypeVar("T")
U = TypeVar("U", bound=Hashable)

# --- sets of objects, whose hashes are all the same ----------------------------------------------

START_BITS = 5
_FIRST = {bits: slot(1, bits) for bits in range(START_BITS, 20)}
_SAFE = 13  # as many members never fill the first table


def _turned(ring: list[T], bits: int) -> list[T]:
    """Return members that lie in a row from their first place on, in the order of the places."""
    room = (1 << bits) - _FIRST[bits]
    return ring if len(ring) <= room else ring[room:] + ring[:room]


def _full(bits: int) -> int:
    """Return the number of members at which a table of 2**bits places grows."""
    return (1 << bits) * 450 // 1000


def settled(members: list[T]) -> list[T]:
    """Return different objects in the order of a new mutable set that they come into one by one."""
    if len(members) <= _SAFE:
        return members
    ring: list[T] = []
    bits, rest = START_BITS, members
    while True:
        taken = _full(bits) - len(ring)
        if len(rest) < taken:
            return _turned(ring + rest, bits)
        ring, rest = _turned(ring + rest[:taken], bits), rest[taken:]
        bits += 1


def distinct(members: Iterable[T]) -> list[T]:
    """Return the members without repetitions, in the order of an immutable set of objects."""
    return list(dict.fromkeys(members))


def union(first: Iterable[T], second: Iterable[T]) -> tuple[T, ...]:
    """Return the immutable set of the objects of two."""
    return tuple(dict.fromkeys((*first, *second)))


class ObjectSet(Generic[T]):
    """A mutable set of objects of the game."""

    __slots__ = ("_bits", "_ring", "_shown")

    def __init__(self, members: Iterable[T] = ()) -> None:
        self._ring: dict[T, None] = {}
        self._bits = START_BITS
        self._shown: tuple[T, ...] | None = None
        for member in members:
            self.add(member)

    def add(self, member: T) -> bool:
        """Add a member; tell whether it is new."""
        if member in self._ring:
            return False
        self._ring[member] = None
        self._shown = None
        if len(self._ring) >= _full(self._bits):
            self._ring = dict.fromkeys(_turned(list(self._ring), self._bits))
            self._bits += 1
        return True

    def remove(self, member: T) -> bool:
        """Remove a member; tell whether it was there."""
        if member not in self._ring:
            return False
        del self._ring[member]
        self._shown = None
        return True

    def update(self, members: Iterable[T]) -> None:
        """Add members one by one."""
        for member in members:
            self.add(member)

    def items(self) -> tuple[T, ...]:
        """Return the members in order; the tuple stays as it is when the set changes."""
        if self._shown is None:
            self._shown = tuple(_turned(list(self._ring), self._bits))
        return self._shown

    def clear(self) -> None:
        """Remove all members; the table stays as large."""
        self._ring.clear()
        self._shown = None

    def __contains__(self, member: object) -> bool:
        return member in self._ring

    def __iter__(self) -> Iterator[T]:
        return iter(self.items())

    def __len__(self) -> int:
        return len(self._ring)


# --- sets of anything else -----------------------------------------------------------------------


class MutableSet(Generic[U]):
    """A `mutable.Set` of texts, numbers or objects."""

    __slots__ = ("_bits", "_known", "_places")

    def __init__(self, members: Iterable[U] = ()) -> None:
        self._bits = START_BITS
        self._places: list[Any] = [None] * (1 << START_BITS)
        self._known: set[U] = set()
        self.update(members)

    def add(self, member: U) -> bool:
        """Add a member; tell whether it is new."""
        if member in self._known:
            return False
        self._known.add(member)
        self._place(member)
        if len(self._known) >= _full(self._bits):
            self._grow()
        return True

    def _place(self, member: U) -> None:
        places = self._places
        at = slot(scala_hash(member), self._bits)
        while places[at] is not None:
            at = (at + 1) & (len(places) - 1)
        places[at] = member

    def _grow(self) -> None:
        members = list(self)
        self._bits += 1
        self._places = [None] * (1 << self._bits)
        for member in members:
            self._place(member)

    def remove(self, member: U) -> bool:
        """Remove a member and close the gap behind it; tell whether it was there."""
        if member not in self._known:
            return False
        self._known.remove(member)
        places, last = self._places, len(self._places) - 1
        gap = places.index(member)
        at = (gap + 1) & last
        while places[at] is not None:
            home = slot(scala_hash(places[at]), self._bits)
            if home != at and self._precedes(home, gap):
                places[gap] = places[at]
                gap = at
            at = (at + 1) & last
        places[gap] = None
        return True

    def _precedes(self, first: int, second: int) -> bool:
        half = len(self._places) >> 1
        return second - first < half if first <= second else first - second > half

    def update(self, members: Iterable[U]) -> None:
        """Add members one by one."""
        for member in members:
            self.add(member)

    def items(self) -> tuple[U, ...]:
        """Return the members in order."""
        return tuple(self)

    def frozen(self) -> FrozenSet[U]:
        """Return `toSet`, the immutable set of the members."""
        return FrozenSet(self)

    def __contains__(self, member: object) -> bool:
        return member in self._known

    def __iter__(self) -> Iterator[U]:
        return (member for member in self._places if member is not None)

    def __len__(self) -> int:
        return len(self._known)


_SMALL = 4


class FrozenSet(Generic[U]):
    """An immutable `Set`: in insertion order up to four members; once larger, a tree of hashes."""

    __slots__ = ("_items", "_tree")

    def __init__(self, members: Iterable[U] = (), *, tree: bool = False) -> None:
        """Hold the members, as `Set(...)` does with its arguments."""
        known = dict.fromkeys(members)
        self._tree = tree or len(known) > _SMALL
        self._items: tuple[U, ...] = tuple(known)
        if self._tree:
            self._items = self._ordered(self._items)

    @classmethod
    def of(cls, *members: U) -> FrozenSet[U]:
        """Return the set of the arguments."""
        return cls(members)

    @staticmethod
    def _ordered(members: tuple[Any, ...]) -> tuple[Any, ...]:
        if members and isinstance(members[0], str):
            return text_order(members)
        return tuple(tree_order(members))

    def items(self) -> tuple[U, ...]:
        """Return the members in order."""
        return self._items

    def union(self, members: Iterable[U]) -> FrozenSet[U]:
        """Return `this ++ members`."""
        return FrozenSet((*self._items, *members), tree=self._tree)

    def plus(self, member: U) -> FrozenSet[U]:
        """Return `this + member`."""
        return FrozenSet((*self._items, member), tree=self._tree)

    def minus(self, *members: U) -> FrozenSet[U]:
        """Return the set without some members."""
        return FrozenSet((m for m in self._items if m not in members), tree=self._tree)

    def filter(self, keep: Callable[[U], bool]) -> FrozenSet[U]:
        """Return the set of the members that a test keeps."""
        return FrozenSet(filter(keep, self._items), tree=self._tree)

    def map(self, change: Callable[[U], Any]) -> FrozenSet[Any]:
        """Return the set of the changed members."""
        return FrozenSet(map(change, self._items), tree=self._tree)

    def __contains__(self, member: object) -> bool:
        return member in self._items

    def __iter__(self) -> Iterator[U]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
