"""MT-GRPO: turns are credited with their own reward, relative to the group's turns of one index."""

from __future__ import annotations

from typing import Literal

import numpy as np

from harness.credit.groups import encode
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, rewards_to_go, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number, one_of

Absent = Literal["skip", "zero"]


@estimator("mt_grpo", needs=("process_reward",))
@with_shared(*EPISODE)
def mt_grpo(
    turns: TurnTable,
    shared: Shared,
    *,
    turn_weight: float = 1.0,
    alpha: float = 1.0,
    absent: Absent = "skip",
) -> Floats:
    """Advantages of the turn's and later rewards and of the outcome, each normalised. Shape [N].

    A_t = sum over l >= t of alpha^(l-t) x_l. For the last turn of a rollout x is A_O, the advantage
    `grpo` of the outcome; for the others it is w A_I, A_I = (r - mean) / (std + eps) over those
    turns of the group that have the same index and are not last. r is the column `process_reward`,
    the reward of the turn itself. With two turns A_0 = w A_I + alpha A_O and A_1 = A_O.
    Reference: Zeng, Wei et al. 2025, Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level
    Reward Design, arXiv:2505.11821, whose released code, SiliangZeng/Multi-Turn-RL-Agent,
    mt_grpo_env_trainer.py, has two turns, w (`turn_advantage_coef`, 1) and no alpha.
    Departs from it: episodes of any and of unequal lengths, where the paper needs equal ones and
    the code gives an episode without a tool's result one advantage of all rewards together.

    Where the policy decides when an episode ends, the number of means that `absent="skip"`
    subtracts depends on its actions, so that the gradient is biased (verl's issue 7244: the
    natural construction). `"zero"` counts a turn that a rollout has no more as one with r = 0, and
    subtracts all later means: they then depend on the index alone. It is this package's own.

    Open in the text at hand: alpha; 1 is the code's.

    Args:
        turns: The turn table, with the column `process_reward`.
        shared: The settings of A_O, and the scale of A_I.
        turn_weight: w.
        alpha: The discount of later advantages, in [0, 1].
        absent: `skip` or `zero`; see above.
    """
    number("turn_weight", turn_weight)
    number("alpha", alpha, 0, 1)
    one_of("absent", absent, ("skip", "zero"))
    assert turns.process_reward is not None
    last = ~turns.goes_on
    signal = np.where(last, shared.episode(turns), 0.0)  # x
    if absent == "skip":
        inner = np.flatnonzero(turns.goes_on)
        label = encode(turns.group[inner], turns.turn[inner])
        signal[inner] = turn_weight * shared.standardise(turns.process_reward[inner], label)
        return rewards_to_go(signal, turns.rollout, alpha)
    if not len(turns):
        return signal
    table = _padded(turns, shared)  # [R, L]
    for index in range(table.shape[1] - 2, -1, -1):
        table[:, index] += alpha * table[:, index + 1]
    own: Floats = turn_weight * table[turns.rollout, turns.turn]
    return own + rewards_to_go(signal, turns.rollout, alpha)


def _padded(turns: TurnTable, shared: Shared) -> Floats:
    """Return A_I of each rollout and index, absent turns among them; shape [R, L]."""
    assert turns.process_reward is not None
    group = turns.group[turns.starts]
    reward = np.zeros((len(group), int(turns.turn.max()) + 1))
    inner = np.flatnonzero(turns.goes_on)
    reward[turns.rollout[inner], turns.turn[inner]] = turns.process_reward[inner]
    columns = [shared.standardise(column, encode(group)) for column in reward.T]
    return np.stack(columns, axis=1)
