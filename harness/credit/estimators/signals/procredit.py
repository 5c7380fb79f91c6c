"""ProCredit: verified progress is a part of the rollout's score and of each turn's return."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.credit.atoms import earned
from harness.credit.groups import encode, standardise
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, rewards_to_go, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("procredit", needs=("next_atoms",), preset={"gamma": 1.0})
@with_shared(*EPISODE, gamma=1.0)
def procredit(
    turns: TurnTable, shared: Shared, *, progress_weight: float = 0.5, turn_weight: float = 1.0
) -> Floats:
    """Advantage of success and final progress, plus that of what a turn still gains. Shape [N].

    Phi_t is the share that holds after turn t of the atoms that did not hold when the rollout
    began, and Phi_0 = 0. A turn earns c (Phi_t - Phi_{t-1}), and the last one of a success 1 more.
    A = A_traj + w A_turn: A_traj is `grpo` over the sums S = success + c Phi_T, and A_turn the
    discounted sum from the turn on, less its mean over all turns of the group. With gamma 1 two
    turns in a row differ by what the first one earned.
    Reference: Ma et al. 2026, ProCredit: From Outcome Rewards to Progress Credit in Agentic
    Reinforcement Learning, arXiv:2609.27532, section 3, as its readers describe it: c = 0.5 and
    gamma = 1 are the paper's experiments; no code was found.

    Open in the text at hand: the divisor of A_traj's deviation (`ddof`), and w, which is 1 in the
    reader's form. The outcome is 1 or 0, whatever rewards are trained on: c is relative to that.

    Args:
        turns: The turn table, with the column `next_atoms`; `atoms` if it has them. Reads
            `success`, and no reward.
        shared: The settings of A_traj; gamma of A_turn, which loses penalties on the `return`.
        progress_weight: c.
        turn_weight: w; 0 leaves A_traj.
    """
    number("progress_weight", progress_weight)
    number("turn_weight", turn_weight)
    before, after = earned(turns)
    outcome = np.where(turns.goes_on, 0.0, turns.success)
    graded = replace(turns, reward=progress_weight * (after - before) + outcome)
    reward, _ = shared.penalised(graded)
    to_go = rewards_to_go(reward, turns.rollout, shared.gamma)
    among = standardise(to_go, encode(turns.group), norm="mean", ddof=1, eps=0.0)
    return shared.episode(graded) + turn_weight * among
