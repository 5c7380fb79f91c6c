"""Estimators that weigh turns by a loss of preferences: no advantages, but gradients of that loss.

Takes a turn table with the column `kl`; returns one weight per row, for the loss `nll`.
"""

from harness.credit.estimators.preferences import (  # noqa: F401 (registers the estimators)
    dmpo,
    dpo,
    ipo,
    kto,
)
