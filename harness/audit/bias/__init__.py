"""The bias laboratory: estimators against the exact policy gradient of small worlds.

The policy is a softmax with a logit for each state and action; tasks are enumerated exactly.
"""

from __future__ import annotations

from harness.audit.bias.figures import Bias, bias_of
from harness.audit.bias.measuring import Cell, Estimate, Lacking, measure
from harness.audit.bias.worlds import LENGTHS, NAMES, Objective, TabularTask, World, make

__all__ = [
    "LENGTHS",
    "NAMES",
    "Bias",
    "Cell",
    "Estimate",
    "Lacking",
    "Objective",
    "TabularTask",
    "World",
    "bias_of",
    "make",
    "measure",
]
