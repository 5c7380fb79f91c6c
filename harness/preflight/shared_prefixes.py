"""The share of tokens that pass through the model where equal beginnings pass once."""

from __future__ import annotations

from typing import Final

from harness.config import Config

_LEFT: Final = {
    ("ALFWorld", "window"): (0.64, 0.78),
    ("ALFWorld", "transcript"): (0.93, 0.96),
    ("WebShop", "window"): (0.57, 0.77),
    ("WebShop", "transcript"): (0.96, 0.97),
    ("Sokoban", "window"): (0.57, 0.66),
    ("Sokoban", "transcript"): (0.90, 0.93),
    ("SearchQA", "window"): (0.35, 0.60),
    ("SearchQA", "transcript"): (0.85, 0.91),
    ("AppWorld", "window"): (0.20, 0.28),
    ("AppWorld", "transcript"): (0.64, 0.72),
    ("SOTOPIA", "window"): (0.34, 0.51),
    ("SOTOPIA", "transcript"): (0.72, 0.83),
}
"""Tokens left of a step of two groups of eight, in one mini-batch and in four, measured by
`benchmarks/training.py --only prefixes`: by environment and context."""


def tokens_left(config: Config) -> float:
    """Return the estimated share of tokens left in a resolved run; 1 where it was not measured."""
    if config.optimizer.packing != "shared":
        return 1.0
    environment = config.env.id.rpartition("/")[2].partition("-")[0]
    whole, parts = _LEFT.get((environment, config.agent.context), (1.0, 1.0))
    alone = config.optimizer.mini_batches == 1 and config.optimizer.mini_batch_size is None
    return whole if alone else parts
