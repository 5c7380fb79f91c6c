"""Series of training runs: seeds, methods and swept values, in this process or in several.

`train_all` takes the runs' configurations, as `harness.config.vary` makes them, and returns their
folders; `state` and `check_all` say what is there, `kinds` which runs differ in their seeds alone.
"""

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
