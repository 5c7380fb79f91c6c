"""IPO: DPO's pairs with a squared loss, whose margin has a goal."""

from __future__ import annotations

import numpy as np

from harness.credit.estimators.preferences.compared import Level, compare
from harness.credit.registry import estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("ipo", needs=("kl",), preset={"gamma": 1.0})
def ipo(
    turns: TurnTable,
    *,
    tau: float = 0.1,
    level: Level = "turn",
    gamma: float = 1.0,
    margin: float = 0.0,
) -> Floats:
    """Weight of a turn's log-probability; its mean has minus the IPO loss's gradient. Shape [N].

    L = mean over pairs of (x_w - x_l - 1 / (2 tau))^2, with x, the pairs and the weights of `dpo`:
    a margin beyond the goal is drawn back.
    Reference: Azar et al. 2023, A General Theoretical Paradigm to Understand Learning from Human
    Preferences, arXiv:2310.12036, Eq. 17. x is a sum over tokens, as in the paper; some released
    code takes the mean.
    Departs from it: as `dpo` does.

    Args:
        turns: The turn table, with the column `kl`.
        tau: The strength of the penalty for leaving pi_ref, more than 0.
        level: `turn` or `episode`.
        gamma: The discount of the returns of turns, in [0, 1].
        margin: A number that returns of a pair differ by more than; see `dpo`.
    """
    number("tau", tau, 1e-6)
    number("margin", margin, 0)
    assert turns.kl is not None
    found = compare(turns, level=level, gamma=gamma)
    if not len(turns):
        return np.zeros(0)
    slope = found.pairs(margin).squared_slope(found.sums(turns.kl), 1 / (2 * tau))
    return found.weights(turns, slope)
