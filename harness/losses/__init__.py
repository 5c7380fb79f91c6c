"""Policy losses: how a token's log-probability and credit become a number to minimise.

A loss is `(logprob [B, T], batch, *, hyperparameters, num_tokens, num_sequences) -> (loss [],
figures)`. Where the batch is a part of a mini-batch, `num_tokens` and `num_sequences` are those of
the whole, so that the parts' losses add up to the whole's. The figures are sums over action tokens,
or maxima where a name ends in `_max`. A sequence is one `Sample`: a turn in the context "window", a
rollout in "transcript".
"""

from harness.losses import policy, supervised  # noqa: F401 (registers the losses)
from harness.losses.registry import check, get, hyperparameters, is_linear, names

__all__ = ["check", "get", "hyperparameters", "is_linear", "names"]
