"""IGPO: turns are credited with what they add to the probability of the right answer."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import encode
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, SCALE, Shared, rewards_to_go, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("igpo", needs=("process_reward",))
@with_shared(*SCALE, *PENALTY, gamma=1.0)
def igpo(turns: TurnTable, shared: Shared) -> Floats:
    """Discounted sum of the turn's and later information gains and of the outcome. Shape [N].

    A_t = sum over k >= t of gamma^(k-t) x_k. For the last turn of a rollout x is the return,
    (R - mean) / (std + eps) over the rollouts of the group; for the others it is the information
    gain, (g - mean) / (std + eps) over all turns of the group that are not the last. g is the
    column `process_reward` and meant to be log p(answer | history with the turn) less that without
    it, the mean over the answer's tokens.
    Reference: Wang et al. 2025, Information Gain-based Policy Optimization, arXiv:2510.14967, as
    its readers describe it; its released code takes probabilities in place of their logarithms. The
    annotator `information_gain` fills the column.

    Open in the text at hand: gamma; 1 is a choice.

    Args:
        turns: The turn table, with the column `process_reward`.
        shared: The discount, and the settings of both x. The penalty is subtracted from the
            advantage of the `row`, or from the rollout's `return`; `step` is nothing here.
    """
    assert turns.process_reward is not None
    reward, _ = shared.penalised(turns)
    returns = np.bincount(turns.rollout, weights=reward)[turns.rollout]
    # Last turns and the others are separate groups: no number of one is compared with the other.
    label = encode(turns.group, turns.goes_on.astype(np.int64))
    signal = np.where(turns.goes_on, turns.process_reward, returns)  # g or R, [N]
    signal = shared.standardise(signal, label)  # x
    return rewards_to_go(signal, turns.rollout, shared.gamma) - shared.row_penalty(turns)
