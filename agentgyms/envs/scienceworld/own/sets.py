"""Sets and maps that go through their members in the order of Scala 2.12.9."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, KeysView
from typing import Any, Generic, TypeVar

from agentgyms.envs.scienceworld.own.jvm import java_hash

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
U = TypeVar("U", bound=Hashable)

_WORD = 0xFFFFFFFF


def scala_hash(member: object) -> int:
    """Return the hash of a member as an unsigned 32-bit integer.

    An object of the game has the hash 1: the JVM is started so that all identities hash alike.
    """
    if isinstance(member, str):
        return java_hash(member)
    if isinstance(member, bool):
        return 1231 if member else 1237
    if isinstance(member, int):
        if -(1 << 31) <= member < 1 << 31:
            return member & _WORD
        return (member ^ (member >> 32)) & _WORD
    if isinstance(member, tuple | list | float):
        raise TypeError(f"no hash is known for {member!r}")
    return 1


def _byteswap(value: int) -> int:
    value = value * 0x9E3775CD & _WORD
    value = int.from_bytes(value.to_bytes(4, "little"), "big")
    return value * 0x9E3775CD & _WORD


def _slot(hashed: int, bits: int) -> int:
    """Return the first place of a hash in a mutable table with 2**bits places."""
    mixed = _byteswap(hashed)
    turn = bits % 32
    turned = (mixed >> turn | mixed << (32 - turn)) & _WORD
    return turned >> (32 - bits)


# --- sets of objects, whose hashes are all the same ----------------------------------------------

_START_BITS = 5
_FIRST = {bits: _slot(1, bits) for bits in range(_START_BITS, 20)}
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
    bits, ring, rest = _START_BITS, [], members
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
        """Add the members one by one."""
        self._ring: dict[T, None] = {}
        self._bits = _START_BITS
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
        """Tell whether a member is there."""
        return member in self._ring

    def __iter__(self) -> Iterator[T]:
        """Go through the members in order."""
        return iter(self.items())

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._ring)


# --- sets of anything else -----------------------------------------------------------------------


class MutableSet(Generic[U]):
    """A `mutable.Set` of texts, numbers or objects."""

    __slots__ = ("_bits", "_known", "_places")

    def __init__(self, members: Iterable[U] = ()) -> None:
        """Add the members one by one."""
        self._bits = _START_BITS
        self._places: list[Any] = [None] * (1 << _START_BITS)
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
        at = _slot(scala_hash(member), self._bits)
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
            home = _slot(scala_hash(places[at]), self._bits)
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
        """Tell whether a member is there."""
        return member in self._known

    def __iter__(self) -> Iterator[U]:
        """Go through the members in order."""
        return (member for member in self._places if member is not None)

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._known)


_SMALL = 4


def _path(hashed: int) -> int:
    """Return where a hash lies in the tree of an immutable set or map, as a number to sort by."""
    mixed = (hashed + ~(hashed << 9)) & _WORD
    mixed ^= mixed >> 14
    mixed = (mixed + (mixed << 4)) & _WORD
    mixed ^= mixed >> 10
    place = 0
    for level in range(0, 35, 5):
        place = place << 5 | (mixed >> level & 31)
    return place


def _tree_order(members: Iterable[T]) -> list[T]:
    return sorted(members, key=lambda member: _path(scala_hash(member)))


class FrozenSet(Generic[U]):
    """An immutable `Set`: in order of insertion up to four members, else in a tree of hashes.

    A set that was once larger than four stays a tree.
    """

    __slots__ = ("_items", "_tree")

    def __init__(self, members: Iterable[U] = (), *, tree: bool = False) -> None:
        """Hold the members, as `Set(...)` does with its arguments."""
        known = dict.fromkeys(members)
        self._tree = tree or len(known) > _SMALL
        self._items: tuple[U, ...] = tuple(_tree_order(known) if self._tree else known)

    @classmethod
    def of(cls, *members: U) -> FrozenSet[U]:
        """Return the set of the arguments."""
        return cls(members)

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
        """Tell whether a member is there."""
        return member in self._items

    def __iter__(self) -> Iterator[U]:
        """Go through the members in order."""
        return iter(self._items)

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._items)


# --- maps ----------------------------------------------------------------------------------------


class MutableMap(Generic[U, V]):
    """A `mutable.Map`, whose buckets are gone through from the last to the first."""

    __slots__ = ("_bits", "_buckets", "_values")

    def __init__(self) -> None:
        """Start with no keys."""
        self._bits = 4
        self._buckets: list[list[U]] = [[] for _ in range(16)]  # the newest key comes last
        self._values: dict[U, V] = {}

    def __setitem__(self, key: U, value: V) -> None:
        """Set the value of a key."""
        if key not in self._values:
            self._buckets[_slot(scala_hash(key), self._bits)].append(key)
            self._values[key] = value
            if len(self._values) > (1 << self._bits) * 750 // 1000:
                self._grow()
        self._values[key] = value

    def _grow(self) -> None:
        keys = list(self)
        self._bits += 1
        self._buckets = [[] for _ in range(1 << self._bits)]
        for key in keys:
            self._buckets[_slot(scala_hash(key), self._bits)].append(key)

    def __getitem__(self, key: U) -> V:
        """Return the value of a key."""
        return self._values[key]

    def __delitem__(self, key: U) -> None:
        """Remove a key."""
        del self._values[key]
        self._buckets[_slot(scala_hash(key), self._bits)].remove(key)

    def get(self, key: U, default: V | None = None) -> V | None:
        """Return the value of a key, or the default."""
        return self._values.get(key, default)

    def known(self) -> KeysView[U]:
        """Return the keys in no order that matters."""
        return self._values.keys()

    def __contains__(self, key: object) -> bool:
        """Tell whether a key is there."""
        return key in self._values

    def __iter__(self) -> Iterator[U]:
        """Go through the keys in order."""
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
        """Return the number of keys."""
        return len(self._values)


def frozen_map(pairs: Iterable[tuple[U, V]]) -> dict[U, V]:
    """Return an immutable `Map` of pairs as a dictionary in its order."""
    known = dict(pairs)
    if len(known) <= _SMALL:
        return known
    return {key: known[key] for key in _tree_order(known)}
