"""Messages for pydantic's errors: dotted key, given value, allowed values, most similar name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from harness.config import allowed_values

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_TYPES: Final = {
    "bool_type": "bool",
    "dict_type": "dict",
    "float_type": "float",
    "int_type": "int",
    "string_type": "str",
    "tuple_type": "list",
}
_RANGES: Final = (
    "finite_number",
    "greater_than",
    "greater_than_equal",
    "less_than",
    "less_than_equal",
)
_LENGTHS: Final = ("missing", "too_long", "too_short")
"""Errors of lists. Every setting has a default, so only items of a list can be missing."""


def describe(kind: type[BaseModel], error: ValidationError) -> str:
    """Return all of pydantic's errors in the values of a section, in one line."""
    details = error.errors(include_url=False)
    return "; ".join(dict.fromkeys(_describe(kind, one) for one in details))


def _describe(kind: type[BaseModel], error: ErrorDetails) -> str:
    section, where, annotation = _find(kind, error["loc"])
    name, given = error["type"], error["input"]
    if name in ("extra_forbidden", "invalid_key"):
        return _unknown(section, where)
    if name == "model_type":
        return f"{where or 'the configuration'} must be a section, got {given!r}"
    if name == "value_error":
        return f"{where} {error['ctx']['error']}"
    if name == "literal_error":
        known = allowed_values.choices(annotation)
        near = nearest(str(given), (str(one) for one in known if one is not None))
        hint = f"; did you mean {near!r}?" if near else ""
        return f"{where} must be one of {', '.join(map(repr, known))}, got {given!r}{hint}"
    if name in _LENGTHS:
        return f"{where} needs {allowed_values.length(annotation)} values, got {list(given)!r}"
    if name in _RANGES:
        return f"{where} must be {allowed_values.bounds(annotation)}, got {given!r}"
    if name in _TYPES:
        return f"{where} must be of type {_TYPES[name]}, got {given!r}"
    return f"{where}: {error['msg']}, got {given!r}"


def _find(
    kind: type[BaseModel], location: tuple[int | str, ...]
) -> tuple[type[BaseModel], str, Any]:
    """Return the section of an error, the dotted key, and the annotation of the key."""
    section, names, annotation = kind, [], None
    for part in location:
        names.append(str(part))
        annotation = allowed_values.annotations_of(section).get(str(part))
        inner = allowed_values.section_of(annotation)
        if inner is None:  # the rest is an index into a list or table
            break
        section = inner
    return section, ".".join(names), annotation


_REMOVED: Final = {
    "run.swept": "`harness train --sweep` keeps it",
    "rollout.partial": 'use rollout.ahead = "partial"',
    "policy.tiny.initial_std": "the standard deviation is always 0.1",
    "rollout.max_draws": "a step of dynamic sampling has at most ten rounds",
    "rollout.branch.max_steps": "use rollout.branch.budget = { steps = ... }",
    "rollout.branch.max_tokens": "use rollout.branch.budget = { tokens = ... }",
    "rollout.curriculum.easy": "use the second of rollout.curriculum.bounds",
    "rollout.curriculum.hard": "use the first of rollout.curriculum.bounds",
    "rollout.curriculum.easy_share": "use the second of rollout.curriculum.shares",
    "rollout.curriculum.hard_share": "use the first of rollout.curriculum.shares",
    "rollout.curriculum.memory": "success is averaged in halves with the earlier one",
    "rollout.mismatch_weights": 'use rollout.correction = "clip", "reject" or "none"',
    "rollout.mismatch_cap": 'use rollout.correction_bounds.cap, or high of "reject"',
    "rollout.mismatch_floor": 'use rollout.correction = "reject" and correction_bounds.low',
    "rollout.rejection": 'use rollout.correction = "reject" and rollout.correction_bounds',
    "rollout.preferences": "name the file in rollout.recorded",
    "optimizer.momentum": "Muon's momentum is always 0.95",
    "optimizer.padding_free": 'use optimizer.packing = "packed" or "padded"',
    "optimizer.share_prefixes": 'use optimizer.packing = "shared"',
    "optimizer.max_kl": "set the number of passes with optimizer.epochs",
    "log.pictures": 'add "pictures" to log.outputs, or leave it out there',
    "log.tensorboard": 'add "tensorboard" to log.outputs, or leave it out there',
    "log.trackio": 'add "trackio" to log.outputs, and set log.project',
    "log.wandb": 'add "wandb" to log.outputs, and set log.project',
    "warmstart.weight_decay": "a warm start's weight decay is always 0.01",
}
"""Settings that were removed, each with what holds or what to use now."""


def _unknown(section: type[BaseModel], where: str) -> str:
    if where in _REMOVED:
        return f"there is no setting {where} any more: {_REMOVED[where]}"
    *sections, key = where.split(".")
    known = list(section.model_fields)
    near = nearest(key, known)
    hint = f"; did you mean {'.'.join([*sections, near])}?" if near else ""
    return f"unknown configuration key {where}: expected one of {', '.join(known)}{hint}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name most similar to `name`; "" if none is similar."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), "")
