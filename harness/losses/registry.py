"""The registry of policy losses: their names and hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from harness.losses.aggregate import Metric
from harness.model.packing import Sample, to_batch
from harness.types.hyperparameters import Registry, keyword_defaults

Loss = Callable[..., tuple[torch.Tensor, dict[str, Metric]]]
"""`(logprob, batch, *, hyperparameters) -> (loss, metrics)`; see `harness.losses`."""

_GIVEN: Final = ("entropy", "num_tokens", "num_sequences")
"""Keywords that the learner sets; all others are hyperparameters."""


@dataclass(frozen=True, slots=True)
class _Entry:
    function: Loss
    linear_unless: tuple[str, ...] | None
    on_policy: bool = True


def _hyperparameters(entry: _Entry) -> dict[str, Any]:
    """Return the keywords of a loss that the learner does not fill."""
    keywords = keyword_defaults(entry.function)
    return {name: default for name, default in keywords.items() if name not in _GIVEN}


def _plugin_entry(_name: str, found: Any) -> _Entry | None:
    for entry in _LOSSES.entries().values():
        if entry.function is found:
            return entry
    return _Entry(found, None) if callable(found) and not isinstance(found, type) else None


_LOSSES: Registry[_Entry] = Registry("loss", _hyperparameters, make_entry=_plugin_entry)
names, hyperparameters = _LOSSES.names, _LOSSES.hyperparameters


def loss(
    name: str, *, linear_unless: Sequence[str] | None = None, on_policy: bool = True
) -> Callable[[Loss], Loss]:
    """Register the decorated function as loss `name`.

    Args:
        name: The name for `harness.losses.get`.
        linear_unless: Hyperparameters that add a term which does not scale with the advantage,
            unless they are 0. Without such a term the loss is linear in the advantages of a
            sequence, as long as their signs do not change. None: it is never linear.
        on_policy: The rollouts must be those of the policy before the update; if not, a run may
            learn from recorded ones (`rollout.recorded`).
    """

    def add(function: Loss) -> Loss:
        unless = None if linear_unless is None else tuple(linear_unless)
        _LOSSES.add(name, _Entry(function, unless, on_policy))
        return function

    return add


def get(name: str) -> Loss:
    """Return a loss; raise `ConfigError` if none has this name."""
    return _LOSSES.get(name).function


def is_linear(name: str, settings: Mapping[str, Any]) -> bool:
    """Return whether the loss is linear in the advantages, as long as their signs do not change.

    If so, equal samples may be merged, and samples with advantage 0 may be dropped.
    Hyperparameters that `settings` lack have their defaults.
    """
    unless = _LOSSES.get(name).linear_unless
    chosen = {**hyperparameters(name), **settings}
    return unless is not None and not any(chosen[key] for key in unless)


def is_on_policy(name: str) -> bool:
    """Return whether the loss needs rollouts of the policy before the update.

    Raises:
        ConfigError: The loss is unknown.
    """
    return _LOSSES.get(name).on_policy


def check(name: str, given: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for an unknown loss or hyperparameter, or a value that it refuses."""
    _LOSSES.check(name, given)
    # Only the loss knows the ranges of its values, so it runs on a batch of one token.
    batch = to_batch([Sample((0,), (0,), (0.0,), 1.0)], pad_id=0)
    logprob = batch.old_logprob  # [1, 1]
    entropy = {"entropy": logprob} if "entropy" in keyword_defaults(get(name)) else {}
    get(name)(logprob, replace(batch, reference_logprob=logprob), **entropy, **given)
