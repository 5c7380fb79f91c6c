"""From losses of tokens to one number."""

from __future__ import annotations

import torch


def token_mean(x: torch.Tensor, action_mask: torch.Tensor, num_tokens: int | None) -> torch.Tensor:
    """Return the sum over action tokens, divided by their number. Shapes [B, T], [B, T] -> [].

    Reference: DAPO, arXiv:2503.14476, Eq. 8: every token weighs the same.

    Args:
        x: Values of tokens.
        action_mask: True at action tokens.
        num_tokens: Action tokens of the whole mini-batch, where `x` is a part of it, so that the
            parts' losses add up to the mini-batch's; None divides by the tokens given.
    """
    count = int(action_mask.sum()) if num_tokens is None else num_tokens
    return (x * action_mask).sum() / max(count, 1)
