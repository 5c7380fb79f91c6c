"""Readers of records: they keep the fields that the benchmark knows, with its types and order.

A database's hash and the results of tools depend on both: a price of 10 is written as 10.0.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple

Reader = Callable[[Any], Any]


class Optional(NamedTuple):
    """The reader of a field that may be missing, and is then None."""

    read: Reader


class Default(NamedTuple):
    """The reader of a field that may be missing, and its value then."""

    read: Reader
    value: Any


def text(value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r:.40}")
    return value


def number(value: Any) -> float:
    """Return a number as a float."""
    return float(value)


def whole(value: Any) -> int:
    """Return a number as an integer."""
    if int(value) != value:
        raise ValueError(f"expected an integer, got {value!r:.40}")
    return int(value)


def flag(value: Any) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {value!r:.40}")
    return value


def day(value: Any) -> str:
    """Return a day as the benchmark writes it, 2025-02-25."""
    return str(date.fromisoformat(text(value)))


def moment(value: Any) -> str:
    """Return a time as the benchmark writes it, 2025-02-25 12:08:00."""
    return str(datetime.fromisoformat(text(value)))


def maybe(read: Reader) -> Reader:
    """Return the reader of a value that may be None."""
    return lambda value: None if value is None else read(value)


def one_of(*choices: str) -> Reader:
    """Return the reader of a text that is one of these."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, got {value!r:.40}")
        return text(value)

    return read


def record(**fields: Reader | Optional | Default) -> Reader:
    """Return the reader of an object with these fields; others are left out."""

    def read(value: Any) -> dict[str, Any]:
        found = {}
        for name, one in fields.items():
            if isinstance(one, Default):
                given = name in value
                found[name] = one.read(value[name]) if given else copy.deepcopy(one.value)
            elif not isinstance(one, Optional):
                found[name] = one(value[name])
            elif value.get(name) is None:
                found[name] = None
            else:
                found[name] = one.read(value[name])
        return found

    return read


def listing(item: Reader) -> Reader:
    """Return the reader of a list."""
    return lambda value: [item(one) for one in value]


def table(item: Reader) -> Reader:
    """Return the reader of an object that has items by name."""
    return lambda value: {text(name): item(one) for name, one in value.items()}


def kinds(field: str, readers: Mapping[str, Reader]) -> Reader:
    """Return the reader of an object whose kind is the value of a field."""
    return lambda value: readers[value[field]](value)
