"""AdamW and its learning-rate schedule, for all trained models."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from harness.config import OptimizerConfig


def make_optimizer(parameters: Iterable[Any], config: OptimizerConfig) -> torch.optim.AdamW:
    """Return AdamW over the trainable parameters; on a GPU it is one kernel for all of them."""
    trained = [p for p in parameters if p.requires_grad]
    on_gpu = bool(trained) and all(p.device.type == "cuda" for p in trained)
    return torch.optim.AdamW(
        trained,
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
        betas=config.betas,
        fused=on_gpu or None,
    )


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """Return the learning rate of a training step.

    It rises linearly over `warmup_steps`, then falls to `final_share` of its peak at the last step.

    Args:
        config: Peak, schedule and warm-up.
        step: Number of the step, from 0.
        steps: Number of steps of the run.
    """
    rise = (step + 1) / max(1, config.warmup_steps)
    left = 1.0 - _progress(step, config.warmup_steps, steps)
    falls = {"constant": 1.0, "linear": left, "cosine": (1 - math.cos(math.pi * left)) / 2}
    share = config.final_share + (1 - config.final_share) * falls[config.schedule]
    return config.learning_rate * min(1.0, rise, share)


def _progress(step: int, warmup: int, steps: int) -> float:
    """Return the completed share of the steps after the warm-up, in [0, 1]."""
    return min(1.0, max(0.0, (step + 1 - warmup) / max(1, steps - warmup)))


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the optimizer."""
    for group in optimizer.param_groups:
        group["lr"] = rate
