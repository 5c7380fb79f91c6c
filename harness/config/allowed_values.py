"""Describes the values that a setting's annotation allows: for errors, help and the docs."""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any, Final, Literal, Union

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel

_NAMES: Final = {dict: "table"}


def section_of(annotation: Any) -> type[BaseModel] | None:
    """Return the section that an annotation stands for; None for a single setting."""
    is_section = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_section else None


def annotations_of(section: type[BaseModel]) -> dict[str, Any]:
    """Return the annotations of a section's settings, ranges included, in the order of the file."""
    hints = typing.get_type_hints(section, include_extras=True)
    return {name: hints[name] for name in section.model_fields}


def choices(annotation: Any) -> tuple[Any, ...]:
    """Return the values of a `Literal` setting or of a list's items; () for others.

    None comes first if it is allowed.
    """
    plain, _, optional = _parts(annotation)
    if typing.get_origin(plain) is tuple:
        return choices(typing.get_args(plain)[0])
    if typing.get_origin(plain) is not Literal:
        return ()
    return (*((None,) if optional else ()), *typing.get_args(plain))


def bounds(annotation: Any) -> str:
    """Return the range of a number or of a list's numbers, such as `at least 1`; "" if it has none.

    A float is always finite.
    """
    plain, metadata, _ = _parts(annotation)
    if typing.get_origin(plain) is tuple:
        return bounds(typing.get_args(plain)[0])
    low = next((f"[{m.ge}" for m in metadata if isinstance(m, Ge)), "")
    low = low or next((f"({m.gt}" for m in metadata if isinstance(m, Gt)), "")
    high = next((f"{m.le}]" for m in metadata if isinstance(m, Le)), "")
    high = high or next((f"{m.lt})" for m in metadata if isinstance(m, Lt)), "")
    if low and high:
        return f"in {low}, {high}"
    finite = "finite" if plain is float else ""
    least = low and f"{'at least' if low[0] == '[' else 'greater than'} {low[1:]}"
    return " and ".join(filter(None, (least, finite)))


def length(annotation: Any) -> int | None:
    """Return the required length of a list; None for any length, or if it is no list."""
    plain, _, _ = _parts(annotation)
    items = typing.get_args(plain)
    fixed = typing.get_origin(plain) is tuple and items[1:] != (...,)
    return len(items) if fixed else None


def kind(annotation: Any) -> str:
    """Return the name of a setting's type, such as `int` or `list of str`."""
    plain, _, _ = _parts(annotation)
    if typing.get_origin(plain) is tuple:
        count = length(annotation)
        of = kind(typing.get_args(plain)[0])
        return f"list of {of}" if count is None else f"list of {count} {of}"
    bare = typing.get_origin(plain) or plain
    return str(_NAMES.get(bare, bare.__name__))


def is_list(annotation: Any) -> bool:
    """Return whether a setting is a list."""
    return typing.get_origin(_parts(annotation)[0]) is tuple


def is_optional(annotation: Any) -> bool:
    """Return whether a setting may be None."""
    return _parts(annotation)[2]


def _parts(annotation: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Return an annotation without ranges and None, its ranges, and whether None is allowed."""
    if typing.get_origin(annotation) is Annotated:
        plain, *metadata = typing.get_args(annotation)
        inner, more, optional = _parts(plain)
        return inner, (*metadata, *more), optional
    if typing.get_origin(annotation) in (Union, types.UnionType):
        (some,) = (one for one in typing.get_args(annotation) if one is not type(None))
        inner, metadata_, _ = _parts(some)
        return inner, metadata_, True
    return annotation, (), False
