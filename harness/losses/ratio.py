"""Importance ratios: how much likelier what was said has become.

B sequences, T tokens; L tokens of a sequence are the policy's own.
"""

from __future__ import annotations

from typing import Final

import torch

RATIOS: Final = ("token", "turn", "sequence")
"""What one ratio is for."""

LARGEST_LOG: Final = 20.0
"""Log-ratios are cut off here, where e^20 = 5e8 is far outside every clip range, and float32 ends
at e^88. Beyond it a token has no gradient."""


def importance_ratio(
    logprob: torch.Tensor, old_logprob: torch.Tensor, turn: torch.Tensor, how: str
) -> torch.Tensor:
    """Return the ratio of each token, and 1 where the policy said nothing. Shape [B, T].

    With d_t = log p(t) - log p_old(t):
    `token`: exp(d_t) (PPO, GRPO).
    `turn`: exp(sum of d over the tokens of the turn), the ratio of a whole action (OPRL, Eq. 6).
    `sequence`: s = exp(mean of d over the L tokens of the sequence), as sg(s) * exp(d_t - sg(d_t)):
    its value is s, its gradient reaches each token alone, so that tokens may differ in advantage
    (GSPO, arXiv:2507.18071, the token-level variant). With one advantage for all tokens the
    gradient is that of s.

    In the context "window" a sequence is a turn, in "transcript" a rollout.

    Args:
        logprob: Under the policy being trained. Shape [B, T].
        old_logprob: When generated. Shape [B, T].
        turn: The turn of its sequence in which a token was said, -1 where it is not the policy's
            own. Shape [B, T].
        how: One of `RATIOS`.
    """
    own = turn >= 0
    log_ratio = torch.where(own, logprob - old_logprob, 0.0)
    if how == "turn":
        place = turn.clamp(min=0)
        total = torch.zeros_like(log_ratio).scatter_add(-1, place, log_ratio)
        log_ratio = torch.where(own, total.gather(-1, place), 0.0)
    elif how == "sequence":
        length = own.sum(-1, keepdim=True).clamp(min=1)
        mean = log_ratio.sum(-1, keepdim=True) / length
        log_ratio = torch.where(own, mean.detach() + log_ratio - log_ratio.detach(), 0.0)
    return log_ratio.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
