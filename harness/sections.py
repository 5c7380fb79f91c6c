"""Sections of settings: frozen dataclasses, filled from TOML, unknown keys refused."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import hashlib
import json
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import ConfigError

_T = TypeVar("_T")


def read(file: Path) -> dict[str, Any]:
    """Return the contents of a TOML file.

    Raises:
        ConfigError: The file is missing or no TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise ConfigError(f"{file} cannot be read: {e.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise ConfigError(f"{file} is not valid TOML: {e}") from None


def overridden(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return nested values with some of them changed.

    Args:
        values: By section and key.
        overrides: Such as `run.seed=3`; what follows the equals sign is TOML, else text.

    Raises:
        ConfigError: An override has another form, or goes through something that is no section.
    """
    changed = copy.deepcopy(dict(values))
    for override in overrides:
        _override(changed, override)
    return changed


def _override(values: dict[str, Any], override: str) -> None:
    dotted, equals, text = override.partition("=")
    if not equals:
        raise ConfigError(f"an override has the form section.key=value, got {override!r}")
    *sections, key = dotted.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{dotted!r}: {section!r} is no section")
    try:
        values[key] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        values[key] = text


def build(kind: type[_T], values: Any, where: str = "") -> _T:
    """Return a dataclass made of nested dictionaries; missing keys take their defaults.

    Args:
        kind: The dataclass; its fields may be dataclasses.
        values: By field.
        where: Prefix of the keys in messages, such as `"agent."`.

    Raises:
        ConfigError: A key is unknown or a value has the wrong type.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where.rstrip('.')} must be a section, got {values!r}")
    hints = typing.get_type_hints(kind)
    for key in values:
        if key not in hints:
            near = difflib.get_close_matches(key, hints, n=1)
            hint = f"; did you mean {where}{near[0]}?" if near else ""
            raise ConfigError(
                f"unknown configuration key {where}{key}: expected one of {', '.join(hints)}{hint}"
            )
    return kind(**{key: _value(hints[key], v, f"{where}{key}") for key, v in values.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, f"{where}.")
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _value(inner[0], value, where)
    if origin is tuple and isinstance(value, list | tuple):
        kinds = inner[:1] * len(value) if inner[1:] == (...,) else inner
        if len(kinds) != len(value):
            raise ConfigError(f"{where} needs {len(kinds)} values, got {value!r}")
        return tuple(_value(k, v, where) for k, v in zip(kinds, value, strict=True))
    expected = origin or hint
    if expected is float and type(value) is int:
        return float(value)
    if not isinstance(value, expected) or (type(value) is bool and expected is not bool):
        raise ConfigError(f"{where} must be of type {expected.__name__}, got {value!r}")
    return value


def without_seed(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a training run's configuration without what its repetitions differ in.

    These are its seed, name, place and number of threads.
    """
    kept = {k: v for k, v in run["run"].items() if k not in ("name", "seed", "output", "threads")}
    return {**run, "run": kept}


def digest(values: Mapping[str, Any]) -> str:
    """Return the first 12 hex characters of the SHA-256 of JSON-plain values."""
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
