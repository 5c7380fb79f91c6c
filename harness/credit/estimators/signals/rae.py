"""RAE: the return less what rollouts of the same seat usually return."""

from __future__ import annotations

from harness.credit.estimators.grpo import Statistics
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn, outcomes
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("rae", needs=("value",))
def rae(
    turns: TurnTable,
    *,
    statistics: Statistics = "rollout",
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Return of a rollout less the baseline of its seat, shared by all its turns.

    A = R - b (Eq. 2), b the column `value`: a moving average of the returns of earlier rollouts at
    the same seat, which the annotator `seat_baseline` keeps. Groups play no part: in a zero-sum
    game their mean says nothing of the policy.
    Reference: Liu et al. 2025, SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning via
    Multi-Agent Multi-Turn Reinforcement Learning, arXiv:2506.24119, section 3 (role-conditioned
    advantage estimation).
    Departs from it: a rollout holds the turns of one seat, the learner's.

    Args:
        turns: N turns of R rollouts, with the column `value`.
        statistics: `rollout`, or `turn`; see `grpo`. It matters to local penalties alone.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: `step`, `row` or `return`; see `grpo`.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
        TableError: The table has no column `value`.
    """
    assert turns.value is not None
    score, _, owner, _ = outcomes(turns, statistics, invalid_penalty, penalty_on)
    return score[owner] - turns.value
