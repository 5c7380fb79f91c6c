"""IGPO: turns are credited with what they add to the probability of the right answer."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import Norm, encode, standardise
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn, penalised, rewards_to_go
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("igpo", needs=("process_reward",))
def igpo(
    turns: TurnTable,
    *,
    gamma: float = 1.0,
    norm: Norm = "std",
    ddof: int = 1,
    eps: float = 1e-6,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Discounted sum of a turn's and later turns' information gains and of the outcome.

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
        turns: N turns of R rollouts, with the column `process_reward`.
        gamma: Discount, in [0, 1].
        norm: Divide by standard deviations (`std`) or only centre (`mean`).
        ddof: 1 for sample standard deviations, 0 for the population's.
        eps: Added to the standard deviations; at least 0.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: What it is subtracted from: the advantage of the `row`, or the rollout's
            `return`; `step` is nothing here.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
        TableError: The table has no column `process_reward`.
    """
    assert turns.process_reward is not None
    reward, local = penalised(turns, invalid_penalty, penalty_on)
    returns = np.bincount(turns.rollout, weights=reward)[turns.rollout]
    # Last turns and the others are separate groups: no number of one is compared with the other.
    label = encode(turns.group, turns.goes_on.astype(np.int64))
    found = np.where(turns.goes_on, turns.process_reward, returns)
    signal = standardise(found, label, norm=norm, ddof=ddof, eps=eps)
    to_go = rewards_to_go(signal, turns.rollout, gamma)
    return to_go - local if penalty_on == "row" else to_go
