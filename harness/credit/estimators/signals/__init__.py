"""Estimators that read what annotators find out about a turn, beside its rewards.

Takes a turn table with their columns; returns one advantage per row.
"""

from harness.credit.estimators.signals import (  # noqa: F401 (registers the estimators)
    aem,
    beacon,
    cast,
    distill,
    empg,
    hcapo,
    igpo,
    oracle,
    planpo,
    rae,
)
