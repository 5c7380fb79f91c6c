"""turn_credit: within a rollout, credit follows the progress of the goal's atoms."""

from __future__ import annotations

from typing import Literal

import numpy as np

from harness.credit.atoms import shares
from harness.credit.groups import encode, standardise
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, Shared, rewards_to_go, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.errors import TableError
from harness.types.hyperparameters import number, one_of

Start = Literal["first", "reset"]


@estimator("turn_credit", needs=("next_atoms", "length"))
@with_shared(*PENALTY)
def turn_credit(
    turns: TurnTable,
    shared: Shared,
    *,
    smear: float = 0.9,
    beta: float = 1.0,
    start: Start = "first",
) -> Floats:
    """Advantage of return and net progress, moved to the turns that led to progress. Shape [N].

    A_t = B + beta (c_t - mean of c). The score of a state is the share of its atoms that hold, and
    a turn's progress v_t is what it adds to the last known score. B is the rollout's return and
    progress less the mean of the group's. Each turn's progress is spread over the turns up to it,
    by weights smear^d at distance d that sum to 1, and c_t is what turn t gets. The mean is over
    the rollout's tokens, so that their sum is B for each of them: beta moves credit alone.
    Reference: snimu 2026, turn_credit, prime-rl's pull request 3282 (orchestrator/algo/
    turn_credit.py), whose `gamma` is `smear` here; the defaults are those of its tests.
    Departs from it: the scores there are any that the environment gives; its length penalty and its
    rollouts that fork are left out.

    Args:
        turns: The turn table, with the columns `next_atoms` and `length`; `atoms` if it has them.
        shared: The penalty is subtracted from the advantage of the `row`, or from the rollout's
            `return`; `step` is nothing here.
        smear: The weight of a turn relative to that of the next one, in [0, 1].
        beta: The weight of the shaping; 0 leaves B.
        start: `first` begins with the first score that is known, as the reference does, so that the
            turn that reached it has no progress; `reset` begins with the atoms before the first
            turn.
    """
    number("smear", smear, 0, 1)
    number("beta", beta)
    one_of("start", start, ("first", "reset"))
    assert turns.length is not None
    if (turns.length <= 0).any():
        row = int(np.flatnonzero(turns.length <= 0)[0])
        raise TableError(f"length is {turns.length[row]} in row {row}, expected a positive number")
    before, after, known = shares(turns)
    progress = after - before  # v, [N]
    if start == "first":
        seen = np.cumsum(known)
        earlier = (seen - known)[turns.starts][turns.rollout]  # known rows of rollouts before
        progress[known & (seen - earlier == 1)] = 0.0
    reward, _ = shared.penalised(turns)
    scores = np.bincount(turns.rollout, weights=reward + progress).astype(np.float64)  # [R]
    group = encode(turns.group[turns.starts])
    level = standardise(scores, group, norm="mean", ddof=1, eps=0.0)[turns.rollout]  # B
    steps = turns.turn + 1.0
    weights = steps if smear == 1 else (1.0 - smear**steps) / (1.0 - smear)
    got = rewards_to_go(progress / weights, turns.rollout, smear)  # c
    tokens = np.bincount(turns.rollout, weights=turns.length)
    mean = np.bincount(turns.rollout, weights=got * turns.length) / tokens
    moved: Floats = got - mean[turns.rollout]
    return level + beta * moved - shared.row_penalty(turns)
