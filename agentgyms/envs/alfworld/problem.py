"""Planning problems: the initial facts and the goal of a household game."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Fact = tuple[str, ...]

PREDICATES: Final = {
    "atlocation": 2,
    "cancontain": 2,
    "cleanable": 1,
    "coolable": 1,
    "heatable": 1,
    "inreceptacle": 2,
    "inreceptacleobject": 2,
    "isclean": 1,
    "iscool": 1,
    "ishot": 1,
    "isreceptacleobject": 1,
    "issliced": 1,
    "istoggled": 1,
    "objectatlocation": 2,
    "objecttype": 2,
    "openable": 1,
    "opened": 1,
    "pickupable": 1,
    "receptacleatlocation": 2,
    "receptacletype": 2,
    "sliceable": 1,
    "toggleable": 1,
}
"""Predicates of initial facts, with their number of arguments."""

FAMILIES: Final = ("pick", "look", "clean", "heat", "cool", "pick2")

_FACT: Final = re.compile(r"\(\s*([^\s()]+)\s+([^\s()]+)(?:\s+([^\s()]+))?\s*\)")
_MAX_DEPTH: Final = 100
"""Goals in the released games nest less than ten deep."""
_COMMENT: Final = re.compile(r";[^\n]*")
_PART: Final = re.compile(r"[()]|[^\s()]+")
_LEAST_ARGUMENTS: Final = {"objecttype": 2, "receptacletype": 2, "holds": 2}
_GOALS: Final = {
    ("inreceptacle", "objecttype", "receptacletype"): "pick",
    ("cleanable", "inreceptacle", "isclean", "objecttype", "receptacletype"): "clean",
    ("heatable", "inreceptacle", "ishot", "objecttype", "receptacletype"): "heat",
    ("coolable", "inreceptacle", "iscool", "objecttype", "receptacletype"): "cool",
    ("=", *sorted(2 * ("inreceptacle", "objecttype", "receptacletype"))): "pick2",
    ("=", *sorted(2 * ("inreceptacle", "objecttype")), "receptacletype"): "pick2",
    (
        "atlocation",
        "holds",
        "inreceptacle",
        "istoggled",
        "objecttype",
        "objecttype",
        "receptacleatlocation",
        "toggleable",
    ): "look",
}
"""Families by the sorted literals of their goal."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal of a game: its family, and the types of its objects and of their place.

    `place` is the receptacle that they belong in, or the lamp for `look`.
    """

    family: str
    target: str
    place: str


@dataclass(frozen=True, slots=True)
class Problem:
    """The initial state of a game: facts by predicate, in lower case, and the goal."""

    facts: Mapping[str, tuple[Fact, ...]]
    goal: Goal
    sentence: str
    """The task sentence, such as `put a clean mug in shelf.`"""
    walkthrough: tuple[str, ...] = field(default=())

    def ids(self) -> set[str]:
        """Return the ids of all things in the facts, except types."""
        return {
            key
            for predicate, known in self.facts.items()
            if predicate != "cancontain"
            for fact in known
            for key in fact
        }

    def pairs(self, predicate: str) -> Iterable[tuple[str, str]]:
        """Return the facts of a predicate with two arguments."""
        return ((fact[0], fact[1]) for fact in self.facts.get(predicate, ()))

    def members(self, predicate: str) -> set[str]:
        """Return the names for which a predicate with one argument holds."""
        return {fact[0] for fact in self.facts.get(predicate, ())}


def parse_problem(text: str) -> tuple[dict[str, tuple[Fact, ...]], Goal]:
    """Return the initial facts and the goal of a PDDL problem; `ValueError` at anything else."""
    text = text.lower()
    if ";" in text:
        text = _COMMENT.sub("", text)
    if text.count("(") != text.count(")"):
        raise ValueError("its parentheses do not match")
    _, opened, rest = text.partition("(:init")
    initial, found, goal = rest.partition("(:goal")
    if not opened or not found:
        raise ValueError("it lacks an (:init ...) or a (:goal ...) section")
    return _facts(initial), parse_goal(goal)


def _facts(section: str) -> dict[str, tuple[Fact, ...]]:
    found = _FACT.findall(section)
    if len(found) != section.count("("):
        raise ValueError("its initial state holds something other than plain facts")
    facts: dict[str, dict[Fact, None]] = {}
    for predicate, first, second in found:
        fact = (first, second) if second else (first,)
        if PREDICATES.get(predicate) != len(fact):
            raise ValueError(f"fact ({' '.join((predicate, *fact))}) is not one of this domain")
        facts.setdefault(predicate, {})[fact] = None
    return {predicate: tuple(known) for predicate, known in facts.items()}


def parse_goal(text: str) -> Goal:
    """Return the goal of a PDDL condition; `ValueError` if it is none of the six kinds."""
    literals = list(_literals(_nested(text)))
    used = tuple(sorted(literal[0] for literal in literals))
    family = _GOALS.get(used)
    if family is None:
        raise ValueError(f"its goal, over {', '.join(used) or 'nothing'}, is of no known kind")
    if any(len(args) < _LEAST_ARGUMENTS.get(name, 1) for name, *args in literals):
        raise ValueError("its goal has a condition with too few arguments")
    if family == "look":
        kind = {args[0]: args[1] for name, *args in literals if name == "objecttype"}
        held = next(args[1] for name, *args in literals if name == "holds")
        lamp = next(args[0] for name, *args in literals if name == "istoggled")
        targets, places = {kind.get(held)}, {kind.get(lamp)}
    else:
        targets = {args[1] for name, *args in literals if name == "objecttype"}
        places = {args[1] for name, *args in literals if name == "receptacletype"}
    return Goal(family, _type_name(targets), _type_name(places))


def _type_name(types: set[Any]) -> str:
    """Return `mug` for `{"mugtype"}`."""
    name = types.pop() if len(types) == 1 else None
    if not isinstance(name, str) or not name.endswith("type"):
        raise ValueError("its goal does not name one type of object and one of place")
    return name.removesuffix("type")


def _nested(text: str) -> list[Any]:
    """Return the first parenthesised expression of `text` as nested lists."""
    stack: list[list[Any]] = [[]]
    for part in _PART.findall(text):
        if part == "(":
            if len(stack) > _MAX_DEPTH:
                raise ValueError(f"its goal is nested deeper than {_MAX_DEPTH} expressions")
            stack.append([])
        elif part != ")":
            stack[-1].append(part)
        elif len(stack) > 1:
            inner = stack.pop()
            stack[-1].append(inner)
            if len(stack) == 1:
                break
    if len(stack) != 1 or not stack[0]:
        raise ValueError("its goal is no expression")
    expression = stack[0][0]
    return expression if isinstance(expression, list) else [expression]


def _literals(expression: list[Any]) -> Iterator[list[str]]:
    """Yield the literals under `and` and `exists`, and what `not (= ...)` compares."""
    match expression:
        case ["and", *inner] | ["exists", _, *inner]:
            pass
        case ["not", ["=", *_]]:
            inner = expression[1:]
        case [str(), *rest] if all(isinstance(part, str) for part in rest):
            yield expression
            return
        case _:
            raise ValueError(f"its goal holds {expression!r:.60}")
    for part in inner:
        if not isinstance(part, list):
            raise ValueError(f"its goal holds {part!r} where an expression belongs")
        yield from _literals(part)
