"""GVPO: outcome advantages shaped by failed turns."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number, one_of

Shaping = Literal["cases", "additive"]

ZERO: Final = 1e-9
"""An outcome advantage this small is 0: the order of a sum shall not choose the case."""


@estimator("gvpo", preset={"invalid_penalty": 0.0})
def gvpo(
    turns: TurnTable,
    *,
    b: float = 0.2,
    shaping: Shaping = "cases",
    base: Base = "dr_grpo",
    **settings: Any,
) -> Floats:
    """Outcome advantage, changed where the turn's own execution failed. Shape [N].

    With Â the base's advantage of a turn, A = Â where it did not fail; where it did,
    A = Â - b if Â = 0, (1 + b) Â if Â < 0, and 0 if Â > 0. So the advantages of a group no longer
    sum to zero, and a group whose returns are all equal, or of one rollout, still learns from its
    failed turns.
    Reference: Group Verification-based Policy Optimization for Interactive Coding Agents (GVPO),
    sections 3.1 and 3.3 (the cases of B and A, which bear no number); the additive variant is that
    of Table 3 and section 4.1.
    Departs from it: one value for a turn, not for a token: all tokens of a turn share its case.
    Tokens of observations are out of every loss here, and of the |tau| that Eq. 1 divides by.

    Args:
        turns: The turn table; reads `failed`.
        b: The strength of the penalty, from 0 on; the paper's is 0.2.
        shaping: `cases` as above. `additive` is the ablation, which puts Â - b for (1 + b) Â where
            Â < 0 and leaves the other cases alone.
        base: The estimator of Â. The paper's is `dr_grpo`, return minus the group's mean, without a
            penalty of invalid actions.
        settings: The hyperparameters of the base.
    """
    number("b", b, 0)
    one_of("shaping", shaping, ("cases", "additive"))
    outcome = base_estimator(base, settings)(turns)
    worse = outcome - b if shaping == "additive" else (1 + b) * outcome
    shaped = np.select([np.abs(outcome) <= ZERO, outcome < 0], [outcome - b, worse], 0.0)
    return np.where(turns.failed, shaped, outcome)
