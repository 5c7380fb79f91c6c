"""Clipped surrogate objectives."""

from __future__ import annotations

import torch


def clipped_surrogate(
    ratio: torch.Tensor, advantage: torch.Tensor, low: float, high: float
) -> torch.Tensor:
    """Return min(r A, clip(r, 1 - low, 1 + high) A), to be maximised. Shapes [B, T] -> [B, T].

    Reference: Schulman et al. 2017, PPO, arXiv:1707.06347, Eq. 7; `high` above `low` is DAPO's
    clip-higher, arXiv:2503.14476.
    """
    return torch.minimum(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)


def clipped_share(
    ratio: torch.Tensor, advantage: torch.Tensor, low: float, high: float
) -> torch.Tensor:
    """Return where the clip stops the gradient, as a mask. Shapes [B, T] -> [B, T]."""
    return ((ratio > 1 + high) & (advantage > 0)) | ((ratio < 1 - low) & (advantage < 0))
