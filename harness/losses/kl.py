"""Estimators of a divergence KL(p, q) from tokens that were drawn from p, one value per token.

Reference: Schulman 2020, "Approximating KL Divergence", http://joschu.net/blog/kl-approx.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from harness.losses.ratio import LARGEST_LOG


def k1(logprob: torch.Tensor, reference_logprob: torch.Tensor) -> torch.Tensor:
    """Return log p - log q: unbiased, may be negative. Shapes [B, T] -> [B, T].

    As a penalty its gradient is that of log p, whose mean is 0: it holds nothing back. It is meant
    for rewards.
    """
    return logprob - reference_logprob


def k2(logprob: torch.Tensor, reference_logprob: torch.Tensor) -> torch.Tensor:
    """Return (log p - log q)^2 / 2: biased, never negative. Shapes [B, T] -> [B, T].

    As a penalty its gradient is, in the mean, that of the divergence.
    """
    return (logprob - reference_logprob).square() / 2


def k3(logprob: torch.Tensor, reference_logprob: torch.Tensor) -> torch.Tensor:
    """Return exp(d) - d - 1, d = log q - log p: unbiased, never negative. [B, T] -> [B, T].

    d is cut off where ratios are; beyond it one token would be the whole penalty, or infinite.
    """
    difference = (reference_logprob - logprob).clamp(max=LARGEST_LOG)
    return difference.exp() - difference - 1


ESTIMATORS: Final[dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
}
"""By name: `(log p, log q) -> KL`."""
