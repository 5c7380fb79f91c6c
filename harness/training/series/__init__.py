"""Series of training runs: seeds, methods and swept values, in this process or in several."""

from __future__ import annotations

from harness.training.series.runs import (
    FINISHED,
    NEW,
    UNFINISHED,
    check_all,
    kinds,
    state,
    train_all,
)

__all__ = ["FINISHED", "NEW", "UNFINISHED", "check_all", "kinds", "state", "train_all"]
