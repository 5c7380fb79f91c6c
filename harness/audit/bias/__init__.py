"""The bias laboratory: estimators against the exact policy gradient of small worlds.

A world's tasks are enumerated (`agentgyms.exact`), so that the gradient of a softmax policy, with a
logit for each state and action, is known without an error. `sampling` plays episodes, and `measure`
compares the gradients by an estimator's advantages with it: their mean, which is off if the
estimator is biased, and their noise.
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
