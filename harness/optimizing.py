"""AdamW and the course of its learning rate, one place for everything that learns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import torch

from harness.config import OptimizerConfig

SCHEDULES: Final = ("constant", "linear", "cosine")
"""Courses of a learning rate after its warm-up; see `learning_rate`."""


def make_optimizer(parameters: Iterable[Any], config: OptimizerConfig) -> torch.optim.AdamW:
    """Return AdamW over those parameters that are trained."""
    return torch.optim.AdamW(
        [p for p in parameters if p.requires_grad],
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
        betas=config.betas,
    )


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """Return the learning rate of a training step.

    It rises along a line over `warmup_steps`, and falls from there to `final_share` of its peak at
    the last step of the run.

    Args:
        config: Peak, schedule and warm-up.
        step: From 0.
        steps: Of the run.
    """
    rise = (step + 1) / max(1, config.warmup_steps)
    left = 1.0 - _passed(step, config.warmup_steps, steps)
    falls = {"constant": 1.0, "linear": left, "cosine": (1 - math.cos(math.pi * left)) / 2}
    share = config.final_share + (1 - config.final_share) * falls[config.schedule]
    return config.learning_rate * min(1.0, rise, share)


def _passed(step: int, warmup: int, steps: int) -> float:
    """Return how much of the way from the end of the warm-up to the last step lies behind."""
    return min(1.0, max(0.0, (step + 1 - warmup) / max(1, steps - warmup)))


def num_parts(config: OptimizerConfig, sequences: int) -> int:
    """Return the optimizer steps of a pass over a training step's sequences."""
    size = config.mini_batch_size
    return min(config.mini_batches, sequences) if size is None else math.ceil(sequences / size)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let the optimizer take its next steps at this rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate
