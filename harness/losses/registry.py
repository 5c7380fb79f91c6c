"""Names of policy losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from harness.credit.registry import check_keywords, keywords
from harness.errors import ConfigError

Loss = Callable[..., tuple[torch.Tensor, dict[str, float]]]

_LOSSES: dict[str, Loss] = {}


def loss(name: str) -> Callable[[Loss], Loss]:
    """Register the decorated function as loss `name`."""

    def add(function: Loss) -> Loss:
        if name in _LOSSES:
            raise ConfigError(f"loss {name!r} is registered already")
        _LOSSES[name] = function
        return function

    return add


def names() -> list[str]:
    """Return the names of all losses."""
    return sorted(_LOSSES)


def get(name: str) -> Loss:
    """Return a loss.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in _LOSSES:
        raise ConfigError(f"unknown loss {name!r}: expected one of {', '.join(names())}")
    return _LOSSES[name]


def hyperparameters(name: str) -> dict[str, Any]:
    """Return a loss's hyperparameters and their defaults.

    Raises:
        ConfigError: The loss is unknown.
    """
    return {key: value for key, value in keywords(get(name)).items() if key != "num_tokens"}


def check(name: str, given: Mapping[str, Any]) -> None:
    """Refuse hyperparameters that the loss does not have.

    Raises:
        ConfigError: The loss or a hyperparameter is unknown.
    """
    check_keywords(f"loss {name!r}", list(hyperparameters(name)), given)
