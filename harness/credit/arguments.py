"""Checks of hyperparameters, so that a wrong one is named and not computed with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from harness.errors import ConfigError


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> None:
    """Refuse what is no finite number in [low, high].

    Raises:
        ConfigError: The message names the hyperparameter, the range and what was given.
    """
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or not low <= value <= high:
        raise ConfigError(f"{name} must be {_range(low, high)}, got {value!r}")


def whole(name: str, value: Any, low: int) -> None:
    """Refuse what is no whole number from `low` on.

    Raises:
        ConfigError: The message names the hyperparameter, the bound and what was given.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise ConfigError(f"{name} must be a whole number of at least {low}, got {value!r}")


def one_of(name: str, value: Any, known: Sequence[Any]) -> None:
    """Refuse what is not among `known`.

    Raises:
        ConfigError: The message names the hyperparameter, what is known and what was given.
    """
    if not any(value is option or value == option for option in known):
        options = ", ".join(map(repr, known))
        raise ConfigError(f"{name} must be one of {options}, got {value!r}")


def _range(low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return "a finite number"
    if high == math.inf:
        return f"a number of at least {low:g}"
    return f"a number in [{low:g}, {high:g}]"
