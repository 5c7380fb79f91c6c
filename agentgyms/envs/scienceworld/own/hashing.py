"""Hashes, and where Scala 2.12.9 puts them in its tables and trees."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

from agentgyms.envs.scienceworld.own.jvm import java_hash

T = TypeVar("T")

_WORD = 0xFFFFFFFF


def scala_hash(member: object) -> int:
    """Return a member's unsigned 32-bit hash; 1 for game objects, as the JVM is started so."""
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


def slot(hashed: int, bits: int, seed_bits: int | None = None) -> int:
    """Return the first place of a hash in a mutable table with 2**bits places.

    A set's table turns the hash by its own size, a map's always by the size it began with.
    """
    mixed = _byteswap(hashed)
    turn = bits if seed_bits is None else seed_bits
    turned = (mixed >> turn | mixed << (32 - turn)) & _WORD
    return turned >> (32 - bits)


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


def tree_order(members: Iterable[T]) -> list[T]:
    """Return the members in the order of a tree of hashes."""
    return sorted(members, key=lambda member: _path(scala_hash(member)))


@lru_cache(maxsize=4096)
def text_order(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts in the order of a tree of hashes; many games ask for the same ones."""
    return tuple(tree_order(texts))
