"""Credit: recorded turns in, advantages out. Pure numpy; no model is needed to replay it."""

from harness.credit import (  # noqa: F401 (registers the estimators)
    dmpo,
    dr_grpo,
    ecpo,
    empg,
    gae,
    gigpo,
    grpo,
    gvpo,
    hcapo,
    hgpo,
    imitation,
    oprl,
    prime,
    reinforce,
    reinforce_pp,
    rloo,
    salt,
    scpo,
)
from harness.credit.registry import check, get, names
from harness.credit.table import TurnTable

__all__ = ["TurnTable", "check", "get", "names"]
