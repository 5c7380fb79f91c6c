"""From losses of tokens to one number."""

from __future__ import annotations

from typing import Final

import torch

from harness.credit.arguments import number, one_of

AGGREGATIONS: Final = ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum")
"""Which tokens weigh the same: all, those of one sequence, or all up to the number of sequences."""


def aggregate(
    x: torch.Tensor,
    action_mask: torch.Tensor,
    how: str = "token_mean",
    *,
    constant: float | None = None,
    num_tokens: int | None = None,
    num_sequences: int | None = None,
) -> torch.Tensor:
    """Return the values of action tokens as one number. Shapes [B, T], [B, T] -> [].

    `token_mean`: sum over all tokens / their number (DAPO, arXiv:2503.14476, Eq. 8).
    `sequence_mean_token_mean`: mean over sequences of the mean over their tokens (GRPO,
    arXiv:2402.03300; GVPO's Eq. 1).
    `sequence_mean_token_sum`: mean over sequences of the sum over their tokens / `constant`
    (Dr. GRPO, arXiv:2503.20783, whose code divides by the longest response allowed).

    Args:
        x: Values of tokens.
        action_mask: True at action tokens.
        how: One of `AGGREGATIONS`.
        constant: Divides the sums of `sequence_mean_token_sum`, in tokens; None stands for 1.
        num_tokens: Action tokens of the whole mini-batch, where `x` is a part of it, so that the
            parts add up to the whole; None takes those given.
        num_sequences: Sequences of the whole mini-batch, likewise; None counts those given that
            have an action token, so that rows which only fill up a batch weigh nothing.

    Raises:
        ConfigError: `how` or `constant` cannot be.
    """
    one_of("aggregation", how, AGGREGATIONS)
    if constant is not None:
        number("constant", constant, 1)
    own = x * action_mask
    if how == "token_mean":
        count = int(action_mask.sum()) if num_tokens is None else num_tokens
        return own.sum() / max(count, 1)
    if how == "sequence_mean_token_mean":
        own = own / action_mask.sum(-1, keepdim=True).clamp(min=1)
    elif constant is not None:
        own = own / constant
    count = int(action_mask.any(-1).sum()) if num_sequences is None else num_sequences
    return own.sum() / max(count, 1)
