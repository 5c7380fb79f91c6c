"""The order of our sets and maps is that of Scala 2.12.9, recorded in a JVM (`data/`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from agentgyms.envs.scienceworld.own.jvm import double_text, java_hash
from agentgyms.envs.scienceworld.own.maps import MutableMap, frozen_map
from agentgyms.envs.scienceworld.own.random import JavaRandom
from agentgyms.envs.scienceworld.own.sets import FrozenSet, MutableSet, ObjectSet, settled

_CASES = json.loads(Path(__file__).with_name("data").joinpath("set_orders.json").read_text())
_MEMBERS: dict[str, Callable[[int], Any]] = {
    "s": lambda number: f"word {number}",
    "l": lambda number: number * 7919 * (100003 if number % 3 == 0 else 1),
    "i": lambda number: number * 31,
}


class _Object:
    def __init__(self, number: int) -> None:
        self._number = number

    def __str__(self) -> str:
        return f"o{self._number}"


def _shown(members: Iterable[Any]) -> str:
    return ",".join(map(str, members))


def _rest(member: Any, divisor: int) -> int:
    """Return a remainder of the hash of a member's text, with the sign that Java gives it."""
    hashed = java_hash(str(member))
    signed = hashed - (1 << 32) if hashed >= 1 << 31 else hashed
    return abs(signed) % divisor * (-1 if signed < 0 else 1)


def _kept(member: Any) -> bool:
    return _rest(member, 3) != 0


def _changed(member: Any) -> str:
    return f"m{_rest(member, 7)}"


@pytest.mark.parametrize("case", _CASES, ids=lambda c: f"{c['kind']}-{len(c['operations'])}")
def test_order_is_that_of_scala(case: dict[str, str]) -> None:
    objects: dict[int, _Object] = {}
    make = _MEMBERS.get(case["kind"], lambda n: objects.setdefault(n, _Object(n)))
    kind: Any = ObjectSet if case["kind"] == "o" else MutableSet
    mutable, general, table = kind(), MutableSet(), MutableMap()
    frozen, other = FrozenSet(), FrozenSet()
    for place, operation in enumerate(case["operations"].split()):
        member = make(int(operation[1:]))
        if operation[0] == "+":
            mutable.add(member)
            general.add(member)
            table[member] = "x"
            frozen = frozen.plus(member)
            other = other.plus(member) if place % 2 == 0 else other
        else:
            mutable.remove(member)
            general.remove(member)
            frozen = frozen.minus(member)
            if member in table:
                del table[member]
    assert _shown(mutable) == _shown(general) == case["mutable"]
    assert _shown(kind(mutable)) == case["mutable copied"]
    assert _shown(kind(filter(_kept, mutable))) == case["mutable filtered"]
    assert _shown(MutableSet(map(_changed, mutable))) == case["mutable mapped"]
    assert _shown(table.keys()) == case["map"]
    assert _shown(frozen_map(table.items())) == case["map to map"]
    assert _shown(general.frozen()) == case["mutable to set"]
    assert _shown(frozen) == case["set"]
    assert _shown(frozen.filter(_kept)) == case["set filtered"]
    assert _shown(frozen.map(_changed)) == case["set mapped"]
    assert _shown(frozen.union(other)) == case["set ++ other"]
    assert _shown(other.union(frozen)) == case["other ++ set"]
    if case["kind"] == "o":
        assert _shown(settled(list(mutable))) == case["mutable copied"]


def test_generator_draws_as_java() -> None:
    drawn = JavaRandom(42)
    assert [drawn.next_int(10) for _ in range(5)] == [0, 3, 8, 4, 0]
    assert drawn.next_int() == -248792245
    assert drawn.next_double() == 0.27707849007413665
    assert abs(drawn.next_float() - 0.6655489) < 1e-7
    assert not drawn.next_boolean()
    assert drawn.next_long() == -1782466964123969572


def test_doubles_are_written_as_java_writes_them() -> None:
    texts = {0.1: "0.1", 100.0: "100.0", 1e7: "1.0E7", 12345678.5: "1.23456785E7", 0.0001: "1.0E-4"}
    assert {value: double_text(value) for value in texts} == texts
