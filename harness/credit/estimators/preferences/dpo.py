"""DPO: preferences between turns of one state, or between episodes, as the weights of turns."""

from __future__ import annotations

import numpy as np

from harness.credit.estimators.preferences.compared import Level, compare
from harness.credit.registry import estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("dpo", needs=("kl",), preset={"gamma": 1.0})
def dpo(
    turns: TurnTable,
    *,
    beta: float = 0.1,
    level: Level = "turn",
    gamma: float = 1.0,
    margin: float = 0.0,
) -> Floats:
    """Weight of a turn's log-probability; its mean has minus the DPO loss's gradient. Shape [N].

    L = mean over pairs of -log sigmoid(beta (x_w - x_l)), x = log(pi / pi_ref) summed over the
    tokens of a turn, or of an episode: the column `kl`. With `level` "turn" a pair is two turns of
    one group with equal states, different actions, and returns from there that differ by more than
    `margin`; the one with the greater return is w, unless it is invalid. With "episode" it is two
    rollouts of a group whose returns do. All such pairs count, and equally. The weight of turn t is
    -dL/dx_t times the number of turns, 0 without a pair: for one optimizer step, over all sequences
    of the context "window", the loss `nll` then has the gradient of L.
    Reference: Rafailov et al. 2023, Direct Preference Optimization, arXiv:2305.18290, Eq. 7. Pairs
    of steps from a search are SALT's baseline DPO-MCTS (Table 2); pairs of episodes are those of
    ETO (Song et al. 2024, arXiv:2403.02502), whose loss is a sum over the turns too.
    Departs from it: x is that of the policy before the step's update, also for its second and
    further optimizer steps (set `optimizer.mini_batches` to 1). Prompts of one state may show
    different histories, and pi_ref's share of both does not cancel there.

    Args:
        turns: The turn table, with the column `kl`.
        beta: The strength of the penalty for leaving pi_ref, at least 0.
        level: `turn` or `episode`.
        gamma: The discount of the returns of turns, in [0, 1].
        margin: A number of at least 0, in units of the reward.
    """
    number("beta", beta, 0)
    number("margin", margin, 0)
    assert turns.kl is not None
    found = compare(turns, level=level, gamma=gamma)
    if not len(turns):
        return np.zeros(0)
    slope = found.pairs(margin).slope(beta * found.sums(turns.kl))
    return found.weights(turns, beta * slope)
