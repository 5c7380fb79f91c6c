"""How each class of the game's objects is read, by the tables of attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple
from zlib import crc32

from agentgyms.envs.scienceworld.own.keys import attributes

Reader = Callable[[Any], tuple[Any, ...]]


class Layout(NamedTuple):
    """The names of a class's attributes, by kind.

    `plain` are values, `references` other objects, `parts` what belongs to one object only,
    `aliases` second names of parts, `constant` what never changes, and `known` all names.
    """

    plain: tuple[str, ...]
    references: tuple[str, ...]
    parts: tuple[str, ...]
    aliases: tuple[str, ...]
    constant: tuple[str, ...]
    known: frozenset[str]


def class_code(kind: type) -> int:
    """Return the number that stands for a class, the same in all processes."""
    return crc32(f"{kind.__module__}.{kind.__qualname__}".encode()) & 0x7FFFFFFF


def layout_of(obj: Any) -> Layout:
    """Return the layout of an object's class; any of its objects tells what all have."""
    kind = type(obj)
    own = frozenset(vars(obj))
    unknown = own - attributes.FOR_THINGS
    if unknown:
        raise NotImplementedError(f"no table has {', '.join(sorted(unknown))} of {kind.__name__}")
    known = own | class_names(kind)
    return Layout(
        _those(attributes.PLAIN, known),
        _those(attributes.REFERENCES, known),
        _those(attributes.PARTS, known),
        _those(attributes.ALIASES, known),
        _those(attributes.CONSTANT, known),
        known,
    )


def class_names(kind: type) -> frozenset[str]:
    """Return the attributes for which a class has a value that its objects may change."""
    return frozenset(name for name in attributes.FOR_THINGS if _is_value(kind, name))


def _is_value(kind: type, name: str) -> bool:
    if not hasattr(kind, name):
        return False
    value = getattr(kind, name)
    return not isinstance(value, property) and not callable(value)


def _those(names: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in known)


def state_names(kind: type) -> tuple[str, ...]:
    """Return the attributes of a class, other than those of objects, that are state."""
    return tuple(
        name for base in reversed(kind.__mro__) for name in attributes.STATE.get(base.__name__, ())
    )


def reader(names: tuple[str, ...]) -> Reader:
    """Return a function that reads attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return attrgetter(names[0], names[0]) if names else _nothing


def _nothing(obj: object) -> tuple[Any, ...]:  # noqa: ARG001
    return ()


def slots_of(kind: type) -> tuple[str, ...]:
    """Return all attributes of a class with slots."""
    return tuple(name for base in kind.__mro__ for name in base.__dict__.get("__slots__", ()))
