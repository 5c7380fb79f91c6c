"""Policy losses: how a token's log-probability and credit become a number to minimise.

A loss is `(logprob [B, T], batch, *, hyperparameters) -> (loss [], metrics)`.
"""

from harness.losses import policy  # noqa: F401 (registers the losses)
from harness.losses.registry import check, get, hyperparameters, names

__all__ = ["check", "get", "hyperparameters", "names"]
