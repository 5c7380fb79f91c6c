"""The supervised loss: what was said well is said again."""

from __future__ import annotations

import torch

from harness.losses.aggregate import aggregate
from harness.losses.registry import loss
from harness.packing import TokenBatch


@loss("nll", linear_unless=())
def nll(
    logprob: torch.Tensor,
    batch: TokenBatch,
    *,
    aggregation: str = "token_mean",
    constant: float | None = None,
    num_tokens: int | None = None,
    num_sequences: int | None = None,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Negative log-likelihood weighted by the advantage: cross-entropy where that is 1.

    L = aggregate_t[ -A_t log p(t) ]. With the advantage 1 for what is to be imitated and 0 for the
    rest it is that of supervised and rejection fine-tuning; tokens with advantage 0 count in the
    mean, so that a step with few good rollouts moves the policy little.

    Args:
        logprob: Log-probabilities under the policy being trained. Shape [B, T].
        batch: The tokens.
        aggregation: See `aggregate`.
        constant: See `aggregate`.
        num_tokens: Action tokens of the mini-batch that this batch is a part of.
        num_sequences: Sequences of that mini-batch.

    Returns:
        The loss (shape []), and sums over the batch's action tokens for logging: `nll`, without
        weights, and `num_tokens`.

    Raises:
        ConfigError: A hyperparameter is out of range.
    """
    mask = batch.action_mask
    figures = {"num_tokens": float(mask.sum()), "nll": -float((logprob.detach() * mask).sum())}
    total = aggregate(
        -batch.advantage * logprob,
        mask,
        aggregation,
        constant=constant,
        num_tokens=num_tokens,
        num_sequences=num_sequences,
    )
    return total, figures
