"""Reads fields of untrusted JSON objects and checks their types.

The argument `what` names the object in messages. If the default is None, a missing field is an
error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentgyms.core.errors import BadRequest

_LARGEST: Final = 2**63 - 1
"""Largest int64: ids become int64 arrays."""


def is_non_negative_int(value: Any) -> bool:
    """Return whether a value is an integer from 0 that fits into an int64."""
    return type(value) is int and 0 <= value <= _LARGEST


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that fits into a float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def number(fields: Mapping[str, Any], name: str, what: str, default: float | None = None) -> float:
    """Return a finite number; raise `BadRequest` for anything else."""
    value = _field(fields, name, what, default)
    if not is_number(value):
        raise BadRequest(f"{name!r} of {what} must be a finite number, got {value!r:.40}")
    return float(value)


def non_negative_int(fields: Mapping[str, Any], name: str, what: str, default: int) -> int:
    """Return an integer from 0; raise `BadRequest` for anything else."""
    value = fields.get(name, default)
    if type(value) is not int or value < 0:
        raise BadRequest(f"{name!r} of {what} must be a whole number from 0, got {value!r:.40}")
    return value


def text(fields: Mapping[str, Any], name: str, what: str, default: str | None = None) -> str:
    """Return a string; raise `BadRequest` for anything else."""
    value = _field(fields, name, what, default)
    if not isinstance(value, str):
        raise BadRequest(f"{name!r} of {what} must be a string, got {value!r:.40}")
    return value


def flag(fields: Mapping[str, Any], name: str, what: str, default: bool) -> bool:
    """Return a bool; raise `BadRequest` for anything else."""
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise BadRequest(f"{name!r} of {what} must be true or false, got {value!r:.40}")
    return value


def one_of(
    fields: Mapping[str, Any], name: str, what: str, known: Sequence[str], default: str
) -> str:
    """Return one of the `known` strings; raise `BadRequest` for anything else."""
    value = text(fields, name, what, default)
    if value not in known:
        raise BadRequest(f"unknown {name!r} of {what}, {value!r:.40}: expected {', '.join(known)}")
    return value


def items(
    fields: Mapping[str, Any], name: str, what: str, default: list[Any] | None = None
) -> list[Any]:
    """Return a list; raise `BadRequest` for anything else."""
    value = _field(fields, name, what, default)
    if not isinstance(value, list):
        raise BadRequest(f"{name!r} of {what} must be a list, got {type(value).__name__}")
    return value


def token_ids(fields: Mapping[str, Any], name: str, what: str) -> tuple[int, ...]:
    """Return token ids, () if the field is missing; raise `BadRequest` for anything else."""
    ids = items(fields, name, what, [])
    if not all(map(is_non_negative_int, ids)):
        raise BadRequest(f"{name!r} of {what} must hold token ids alone")
    return tuple(ids)


def _field(fields: Mapping[str, Any], name: str, what: str, default: Any) -> Any:
    if name not in fields and default is None:
        raise BadRequest(f"{what} has no {name!r}")
    return fields.get(name, default)
