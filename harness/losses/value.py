"""The loss of a critic."""

from __future__ import annotations

import torch

from harness.types.errors import ConfigError
from harness.types.hyperparameters import number


def value_loss(
    value: torch.Tensor,  # V, under the critic being trained. Any shape S.
    old_value: torch.Tensor,  # V_old, under the critic before the update. Shape S.
    returns: torch.Tensor,  # R, the target of the value. Shape S.
    mask: torch.Tensor,  # True at the values that count. Shape S.
    clip: float | None = 0.2,  # c, more than 0, in units of the return; None does not clip
    *,
    # Counted values of the mini-batch if these are a micro-batch, so that the parts add up; None
    # takes those given.
    num_values: int | None = None,
) -> torch.Tensor:
    """Return half the mean squared error of values, clipped as in PPO's released code. Shape [].

    L = mean[ max((V - R)^2, (clip(V, V_old - c, V_old + c) - R)^2) ] / 2: a value that has moved
    more than c towards its return since the rollouts has no gradient.
    Reference: PPO, arXiv:1707.06347, has the squared error; the clip is in its authors' code.
    Raises `ConfigError` if `clip` is out of range.
    """
    error = (value - returns).square()
    if clip is not None:
        number("clip", clip, 0)
        if not clip:
            raise ConfigError("clip must be more than 0: no value could be learned")
        near = old_value + (value - old_value).clamp(-clip, clip)  # S
        # The larger error: where the clipped one wins, the value has no gradient.
        error = torch.maximum(error, (near - returns).square())
    count = int(mask.sum()) if num_values is None else num_values
    return (error * mask).sum() / (2 * max(count, 1))
