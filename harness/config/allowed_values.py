"""What a setting allows, in words: for help and the docs, and for errors of other values."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, Union

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

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
    """Return the values of a `Literal` setting or a list's items, any None first; () for others."""
    plain, _, optional = _parts(annotation)
    if typing.get_origin(plain) is tuple:
        return choices(typing.get_args(plain)[0])
    if typing.get_origin(plain) is not Literal:
        return ()
    return (*((None,) if optional else ()), *typing.get_args(plain))


def bounds(annotation: Any) -> str:
    """Return the range of a number or of a list's numbers, such as `at least 1`; "" without one."""
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


_TYPES: Final = {
    "bool_type": "bool",
    "dict_type": "dict",
    "float_type": "float",
    "int_type": "int",
    "string_type": "str",
    "tuple_type": "list",
}
_RANGES: Final = (
    *("finite_number", "greater_than", "greater_than_equal", "less_than", "less_than_equal"),
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
        return _other_name(kind, where, given) or _unknown(section, where)
    if name == "model_type":
        return f"{where or 'the configuration'} must be a section, got {given!r}"
    if name == "value_error":
        return f"{where} {error['ctx']['error']}"
    if name == "literal_error":
        known = choices(annotation)
        near = nearest(str(given), (str(one) for one in known if one is not None))
        hint = f"; did you mean {near!r}?" if near else ""
        return f"{where} must be one of {', '.join(map(repr, known))}, got {given!r}{hint}"
    if name in _LENGTHS:
        return f"{where} needs {length(annotation)} values, got {list(given)!r}"
    if name in _RANGES:
        return f"{where} must be {bounds(annotation)}, got {given!r}"
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
        annotation = annotations_of(section).get(str(part))
        inner = section_of(annotation)
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


_NAMES_IN_TRAINING_AND_EVALUATION: Final = (
    ("agent.max_tokens", "sampling.max_tokens"),
    ("agent.temperature", "sampling.temperature"),
    ("eval.tasks", "run.tasks"),
    ("policy.model", "model.name"),
)
"""Settings that a training run and an evaluation name differently."""


def _other_name(kind: type[BaseModel], where: str, given: Any) -> str:
    """Return what the key of a training run is called in an evaluation, and the reverse; or ""."""
    keys = [f"{where}.{name}" for name in given] if isinstance(given, dict) else [where]
    for names in _NAMES_IN_TRAINING_AND_EVALUATION:
        for key, name in (names, names[::-1]):
            section, _, setting = name.partition(".")
            own = section_of(annotations_of(kind).get(section))
            if key in keys and own is not None and setting in own.model_fields:
                return f"unknown configuration key {key}: here it is {name}"
    return ""


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
