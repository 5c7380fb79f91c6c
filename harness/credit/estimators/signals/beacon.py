"""BEACON: turns are compared by how soon they are followed by the next milestone."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import encode
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints
from harness.types.hyperparameters import number, one_of


@estimator("beacon", needs=("process_reward",))
@with_shared(*EPISODE, "gamma", norm="mean")
def beacon(
    turns: TurnTable,
    shared: Shared,
    *,
    milestone_reward: float = 10.0,
    reached_only: bool = True,
    step_weight: float = 1.0,
) -> Floats:
    """Episode advantage plus that among the group's turns to one milestone. Shape [N].

    A = A_E + lambda A_seg. The turns of a rollout whose `process_reward` is positive reach its
    milestones, and end its segments. A turn t of a segment that ends at t_k has
    r = R_ms gamma^(t_k - t); what follows the last milestone has r = 0. A_seg is r less its mean
    over the turns of the group on the way to the same milestone, the k-th one, of the rollouts that
    reach it; other turns get 0. A_E is `grpo`.
    Reference: Wang et al. 2026, Milestone-Guided Policy Learning for Long-Horizon Language Agents
    (BEACON), arXiv:2605.06078, as described beside its code, ZJU-REAL/BEACON.
    Departs from it: milestones of ALFWorld are the environment's subgoals, not the actions of a
    demonstration.

    The code compares all turns behind the (k-1)-th milestone, those that reach no other with r = 0:
    `reached_only=False`, set by the preset `verl_agent`. Its scripts only centre, as here; for
    ALFWorld they have lambda 10 and gamma 0.9, and the text beside it 1 and 0.95 throughout. Its
    trainer (verl/trainer/ppo/ray_trainer.py) takes the penalty of an invalid turn off r too, before
    r is compared, as `penalty_on="row"` does.

    Args:
        turns: The turn table, with the column `process_reward`.
        shared: The settings of both parts. With `penalty_on="row"` r loses the penalty, and the
            turn's score in A_E; `step` is nothing here, but for statistics of rows.
        milestone_reward: R_ms, the return of the turn that reaches a milestone.
        reached_only: Compare only turns that are followed by their milestone.
        step_weight: lambda, the weight of A_seg.
    """
    number("milestone_reward", milestone_reward)
    number("step_weight", step_weight)
    one_of("reached_only", reached_only, (True, False))
    assert turns.process_reward is not None
    segment, left, reached = segments(turns, turns.process_reward > 0)  # [N] each
    value = np.where(reached, milestone_reward * float(shared.gamma) ** left, 0.0)  # r
    value = value - shared.row_penalty(turns)
    label = encode(turns.group, segment)
    rows = np.flatnonzero(reached | (not reached_only))
    step = np.zeros(len(turns))
    step[rows] = shared.standardise(value[rows], encode(label[rows]))
    return shared.episode(turns) + step_weight * step


def segments(turns: TurnTable, milestone: Bools) -> tuple[Ints, Ints, Bools]:
    """Return each turn's segment, the turns left to its end, and whether it ends at a milestone.

    Segments of a rollout are numbered from 0; the turns left are 0 where there is no milestone.
    Shapes [N] each.
    """
    n = len(turns)
    before: Ints = np.cumsum(milestone) - milestone
    segment: Ints = before - before[turns.starts][turns.rollout]
    row = np.arange(n)
    # The row of the next milestone, the turn itself included: a minimum from the end backwards.
    following = np.minimum.accumulate(np.where(milestone, row, n)[::-1])[::-1]
    end = np.append(turns.rollout, -1)[following]  # its rollout; -1 behind the last milestone
    reached = end == turns.rollout
    return segment, np.where(reached, following - row, 0), reached
