"""Estimators that weigh turns by a loss of preferences: no advantages, but gradients of that loss.

They read the column `kl`. Their weights are for the loss `nll`.
"""

from harness.credit.estimators.preferences import (  # noqa: F401 (registers the estimators)
    dmpo,
    dpo,
    ipo,
    kto,
)
