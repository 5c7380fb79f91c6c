"""Names of policy losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from harness.credit.registry import check_keywords, keywords
from harness.errors import ConfigError
from harness.packing import Sample, to_batch

Loss = Callable[..., tuple[torch.Tensor, dict[str, float]]]

_GIVEN: Final = ("entropy", "num_tokens", "num_sequences")
"""Keywords that the learner fills; all others are hyperparameters."""


@dataclass(frozen=True, slots=True)
class _Entry:
    function: Loss
    linear_unless: tuple[str, ...] | None


_LOSSES: dict[str, _Entry] = {}


def loss(name: str, *, linear_unless: Sequence[str] | None = None) -> Callable[[Loss], Loss]:
    """Register the decorated function as loss `name`.

    Args:
        name: In `harness.losses.get`.
        linear_unless: Hyperparameters that add a term which does not scale with the advantage,
            unless they are 0. Everything else is linear in the advantages of a sequence, as long as
            their signs stay. None: the loss is not.
    """

    def add(function: Loss) -> Loss:
        if name in _LOSSES:
            raise ConfigError(f"loss {name!r} is registered already")
        _LOSSES[name] = _Entry(function, None if linear_unless is None else tuple(linear_unless))
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
    return _entry(name).function


def _entry(name: str) -> _Entry:
    if name not in _LOSSES:
        raise ConfigError(f"unknown loss {name!r}: expected one of {', '.join(names())}")
    return _LOSSES[name]


def hyperparameters(name: str) -> dict[str, Any]:
    """Return a loss's hyperparameters and their defaults.

    Raises:
        ConfigError: The loss is unknown.
    """
    return {key: value for key, value in keywords(get(name)).items() if key not in _GIVEN}


def is_linear(name: str, settings: Mapping[str, Any]) -> bool:
    """Return whether the loss is linear in the advantages, as long as their signs stay.

    Then samples of equal tokens may be merged, and those without credit left out.

    Args:
        name: The loss.
        settings: Its hyperparameters; those missing take their defaults.
    """
    unless = _entry(name).linear_unless
    chosen = {**hyperparameters(name), **settings}
    return unless is not None and not any(chosen[key] for key in unless)


def check(name: str, given: Mapping[str, Any]) -> None:
    """Refuse hyperparameters that the loss does not have, and values that it cannot use.

    Raises:
        ConfigError: The loss or a hyperparameter is unknown, or the loss of a single token refuses
            a value.
    """
    check_keywords(f"loss {name!r}", list(hyperparameters(name)), given)
    batch = to_batch([Sample((0,), (0,), (0.0,), 1.0)], pad_id=0)
    known = batch.old_logprob
    entropy = {"entropy": known} if "entropy" in keywords(get(name)) else {}
    get(name)(known, replace(batch, reference_logprob=known), **entropy, **given)
