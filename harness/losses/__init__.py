"""Policy losses: take log-probabilities and advantages of tokens, return a number to minimise.

A loss is `(logprob [B, T], batch, *, hyperparameters, num_tokens, num_sequences) -> (loss [],
metrics)`. For a micro-batch, `num_tokens` and `num_sequences` are those of its mini-batch, so that
the losses of the micro-batches add up to the loss of the mini-batch. Each `Metric` defines how the
values of several batches are combined. A sequence is one `Sample`: a turn in the context "window",
a rollout in "transcript". `mismatch` corrects for an engine that samples with other probabilities.
"""

from harness.losses import policy, supervised  # noqa: F401 (registers the losses)
from harness.losses.aggregate import Metric, Reduction
from harness.losses.registry import (
    check,
    get,
    hyperparameters,
    is_linear,
    is_on_policy,
    names,
)

__all__ = [
    "Metric",
    "Reduction",
    "check",
    "get",
    "hyperparameters",
    "is_linear",
    "is_on_policy",
    "names",
]
