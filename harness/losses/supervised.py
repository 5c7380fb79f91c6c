"""The supervised loss: weighted negative log-likelihood."""

from __future__ import annotations

import torch

from harness.losses.aggregate import Metric, aggregate
from harness.losses.registry import loss
from harness.model.packing import TokenBatch


@loss("nll", linear_unless=(), on_policy=False)
def nll(
    logprob: torch.Tensor,
    batch: TokenBatch,
    *,
    aggregation: str = "token_mean",
    constant: float | None = None,
    num_tokens: int | None = None,
    num_sequences: int | None = None,
) -> tuple[torch.Tensor, dict[str, Metric]]:
    """Negative log-likelihood weighted by the advantage: cross-entropy where that is 1.

    L = aggregate_t[ -A_t log p(t) ]. With advantage 1 for imitated tokens and 0 for others it is
    the loss of supervised and rejection fine-tuning. Tokens with advantage 0 count in the mean, so
    that a step with few good rollouts changes the policy little.

    `logprob` is of the policy being trained, [B, T]; for the other arguments see `aggregate`.
    Returns the loss (shape []), and the metric `nll`: the negative log-likelihood of the action
    tokens, without weights. Raises `ConfigError` for a hyperparameter out of range.
    """
    mask = batch.action_mask
    metrics = {"nll": Metric(-float((logprob.detach() * mask).sum()))}
    total = aggregate(
        -batch.advantage * logprob,
        mask,
        aggregation,
        constant=constant,
        num_tokens=num_tokens,
        num_sequences=num_sequences,
    )
    return total, metrics
