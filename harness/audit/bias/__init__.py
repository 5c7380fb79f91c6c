"""The bias laboratory: estimators against the exact policy gradient of small worlds.

A world's tasks are enumerated (`agentgyms.exact`), so the gradient of a softmax policy of a table is
known without an error. `draw` plays episodes, and `measure` compares the gradients that an
estimator's advantages give with it: their mean, which is off if the estimator is biased, and their
noise.
"""

from __future__ import annotations

from harness.audit.bias.figures import Bias, bias_of
from harness.audit.bias.measuring import Cell, Estimate, measure
from harness.audit.bias.worlds import NAMES, Objective, TabularTask, World, make

__all__ = [
    *("NAMES", "Bias", "Cell", "Estimate", "Objective", "TabularTask", "World"),
    *("bias_of", "make", "measure"),
]
