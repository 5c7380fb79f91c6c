"""Estimators that read the columns of annotators, beside the rewards."""

from harness.credit.estimators.signals import (  # noqa: F401 (registers the estimators)
    aem,
    agent_opsd,
    beacon,
    cast,
    distill,
    empg,
    hcapo,
    igpo,
    mt_grpo,
    oracle,
    otb,
    planpo,
    procredit,
    rae,
    sdar,
    turn_credit,
)
