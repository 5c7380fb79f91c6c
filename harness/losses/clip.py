"""Clipped surrogate objectives."""

from __future__ import annotations

import torch


def clipped_surrogate(
    ratio: torch.Tensor,
    advantage: torch.Tensor,
    low: float,
    high: float,
    dual: float | None = None,
) -> torch.Tensor:
    """Return min(r A, clip(r, 1 - low, 1 + high) A), to be maximised. Shapes [B, T] -> [B, T].

    With `dual` = c it is at least c A where A < 0: what has become far likelier although it was bad
    no longer pulls.

    Reference: Schulman et al. 2017, PPO, arXiv:1707.06347, Eq. 7; `high` above `low` is DAPO's
    clip-higher, arXiv:2503.14476; dual clip is Ye et al. 2020, arXiv:1912.09729.
    """
    surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)
    if dual is None:
        return surrogate
    return torch.where(advantage < 0, torch.maximum(surrogate, dual * advantage), surrogate)


def clipped_share(
    ratio: torch.Tensor,
    advantage: torch.Tensor,
    low: float,
    high: float,
    dual: float | None = None,
) -> torch.Tensor:
    """Return where the clip stops the gradient, as a mask. Shapes [B, T] -> [B, T]."""
    good, bad = advantage > 0, advantage < 0
    stopped = ((ratio > 1 + high) & good) | ((ratio < 1 - low) & bad)
    return stopped if dual is None else stopped | ((ratio > dual) & bad)
