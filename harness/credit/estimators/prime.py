"""PRIME: implicit process rewards and outcomes, each against the other rollouts."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from harness.credit.estimators.rloo import leave_one_out
from harness.credit.groups import distance, encode, group_mean, group_size
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, Shared, rewards_to_go, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.hyperparameters import number, one_of


@estimator("prime", needs=("process_reward",), preset={"gamma": 1.0, "eps": 1e-8})
@with_shared("ddof", *PENALTY, gamma=1.0, eps=1e-8)
def prime(
    turns: TurnTable,
    shared: Shared,
    *,
    process_weight: float = 5.0,
    outcome_weight: float = 5.0,
    baseline: Literal["others", "released"] = "others",
) -> Floats:
    """Return of implicit process rewards and outcome, each less its baseline. Shape [N].

    G_t = sum over s >= t of gamma^(s-t) * [w_p (r_s - b_i) + w_o L_i on the last row], and
    A = (G - mean(G)) / (std(G) + eps) over all rows of the batch. r is the column `process_reward`
    and m_j the mean of rollout j's r; b_i is the mean of the m_j of the group's other rollouts. L_i
    is the `rloo` advantage of success (1 or 0). A group of one gets 0 and takes no part in the
    whitening. Rows are tokens (see `harness.credit.tokens`), as in the paper, or turns.
    Reference: Cui et al. 2025, PRIME, arXiv:2502.01456 (implicit process rewards with RLOO); the
    two weights and the whitening are its released code's.
    Departs from it: by default nothing. The released code does not take the rollout itself out of
    the baseline but scales: (r_s - mean over all m_j) * n / (n - 1); that is `baseline="released"`.

    Args:
        turns: The table, with the column `process_reward`: beta times the log-ratio of reward model
            and reference.
        shared: The settings of G and of the whitening. The penalty is subtracted from G of the
            `row`, before the whitening, or from the turn's reward (`return`); `step` is nothing.
        process_weight: w_p.
        outcome_weight: w_o.
        baseline: `others` or `released`.
    """
    number("process_weight", process_weight)
    number("outcome_weight", outcome_weight)
    one_of("baseline", baseline, ("others", "released"))
    assert turns.process_reward is not None
    group = encode(turns.group[turns.starts])  # [R]
    process = _centred(turns.process_reward, turns.rollout, group, baseline)
    outcome = leave_one_out(turns.success[turns.starts].astype(np.float64), group)  # [R]
    reward = process_weight * process
    reward[~turns.goes_on] += outcome_weight * outcome
    total, _ = shared.penalised(replace(turns, reward=reward))
    to_go = rewards_to_go(total, turns.rollout, shared.gamma) - shared.row_penalty(turns)
    return shared.whiten(to_go, counted=(group_size(group) > 1)[turns.rollout])


def _centred(reward: Floats, rollout: Ints, group: Ints, baseline: str) -> Floats:
    """Process rewards less their baseline. Shapes [N], [N], [R] -> [N]."""
    mean = group_mean(reward, rollout)  # [N]
    size = group_size(group)[rollout]
    own = np.zeros(len(group))
    own[rollout] = mean  # [R]
    if baseline == "others":
        return distance(reward, mean) + leave_one_out(own, group)[rollout]
    return distance(reward, group_mean(own, group)[rollout]) * size / np.maximum(size - 1, 1)
