"""Imitation: which turns a supervised method learns from."""

from __future__ import annotations

from typing import Literal

import numpy as np

from harness.credit.registry import estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import one_of


@estimator("imitation")
def imitation(
    turns: TurnTable, *, keep: Literal["success", "all"] = "success", valid_only: bool = True
) -> Floats:
    """Weight of each turn in a supervised loss: 1 if it is imitated, else 0. Shape [N].

    Reference: rejection fine-tuning, Yuan et al. 2023, arXiv:2308.01825, which keeps the successes
    of the initial policy; expert iteration, Anthony et al. 2017, arXiv:1705.08439, which keeps
    those of the current one.
    Departs from them: with `valid_only` a success's malformed and inadmissible turns are not
    imitated, as they did not help it.

    Args:
        turns: The turn table; reads `success` and `valid`.
        keep: `success` imitates turns of successful rollouts, `all` all.
        valid_only: Leave invalid turns out.
    """
    one_of("keep", keep, ("success", "all"))
    one_of("valid_only", valid_only, (True, False))
    chosen = turns.success if keep == "success" else np.ones(len(turns), np.bool_)
    return (chosen & (turns.valid | (not valid_only))).astype(np.float64)
