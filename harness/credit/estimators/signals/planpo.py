"""PlanPO: among successes, those of fewer turns and of shorter responses are better."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from harness.credit.groups import encode
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, episode_returns, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.errors import TableError
from harness.types.hyperparameters import number, one_of

Among = Literal["successes", "all"]


@estimator("planpo", needs=("length",))
@with_shared(*EPISODE)
def planpo(
    turns: TurnTable, shared: Shared, *, alpha: float = 0.1, among: Among = "successes"
) -> Floats:
    """Advantage of a rollout's return per turn, plus that of return per token. Shape [N].

    A = A_E + alpha A_S (Eq. 7). In a success of return R and T turns, a rollout has R / T (Eq. 2)
    and a turn with a response of L tokens R / L (Eq. 5); in a failure both are 0.
    A_E = (R/T - mean) / (std + eps) over the rollouts of the group (Eq. 3), A_S the same of R / L
    over the group's responses (Eq. 6).
    Reference: Liang et al. 2026, PlanPO: Group Planning-Aware Policy Optimization for Multi-Turn
    Agentic LLMs, arXiv:2608.17289.
    Departs from it: alpha is one number; the paper lets it fall in a line during training (Eq. 8).

    Open in the paper: whose responses A_S compares. The text says only successful ones, all turns
    of the task together (`among="successes"`); Eq. 4 has all responses, failures with 0 (`"all"`).
    No code of it was found, and the paper names no penalty of invalid actions, but takes its
    settings from verl-agent, whose code has one; that A_S knows none is a choice of this code.

    Args:
        turns: The turn table, with the column `length`; reads `success`.
        shared: The settings of both parts. Penalties are subtracted from R / T.
        alpha: The weight of A_S, at least 0; the paper begins with 0.1.
        among: `successes` or `all`; see above.

    Raises:
        TableError: The table has no column `length`, or a length is not positive.
    """
    number("alpha", alpha, 0)
    one_of("among", among, ("successes", "all"))
    assert turns.length is not None
    if (turns.length <= 0).any():
        row = int(np.flatnonzero(turns.length <= 0)[0])
        raise TableError(f"length is {turns.length[row]} in row {row}, expected a positive number")
    unpaid = replace(turns, reward=np.zeros(len(turns)))  # so that scores are minus the penalties
    lost, group, owner, weight = shared.outcomes(unpaid)
    first = turns.starts if len(lost) == len(turns.starts) else np.arange(len(turns))
    num_turns = np.bincount(turns.rollout)[turns.rollout]  # T, [N]
    returns = episode_returns(turns)[turns.rollout]
    gained = np.where(turns.success, returns / num_turns, 0.0)[first]
    per_turn = gained + lost
    coarse = shared.standardise(per_turn, group, weight)[owner]  # A_E, [N]
    per_token = np.where(turns.success, returns / turns.length, 0.0)
    rows = np.flatnonzero(turns.success | (among == "all"))
    fine = np.zeros(len(turns))
    fine[rows] = shared.standardise(per_token[rows], encode(turns.group[rows]))
    return coarse + alpha * fine
