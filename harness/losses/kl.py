"""Estimators of the divergence from the reference policy, per token.

Reference: Schulman 2020, "Approximating KL Divergence", http://joschu.net/blog/kl-approx.html
"""

from __future__ import annotations

import torch


def k3(logprob: torch.Tensor, reference_logprob: torch.Tensor) -> torch.Tensor:
    """Return exp(d) - d - 1, d = log p_ref - log p: unbiased, never negative. [B, T] -> [B, T]."""
    difference = reference_logprob - logprob
    return difference.exp() - difference - 1
