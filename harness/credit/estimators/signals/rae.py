"""RAE: the return less what rollouts of the same seat usually return."""

from __future__ import annotations

from harness.credit.registry import estimator
from harness.credit.shared import OUTCOMES, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("rae", needs=("value",))
@with_shared(*OUTCOMES)
def rae(turns: TurnTable, shared: Shared) -> Floats:
    """Return of a rollout less the baseline of its seat, shared by all its turns. Shape [N].

    A = R - b (Eq. 2), b the column `value`: a moving average of the returns of earlier rollouts at
    the same seat, which the annotator `seat_baseline` keeps. Groups play no part: in a zero-sum
    game their mean says nothing of the policy. So `statistics` matters to local penalties alone.
    Reference: Liu et al. 2025, SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning via
    Multi-Agent Multi-Turn Reinforcement Learning, arXiv:2506.24119, section 3 (role-conditioned
    advantage estimation).
    Departs from it: a rollout holds the turns of one seat, the learner's.
    """
    assert turns.value is not None
    score, _, owner, _ = shared.outcomes(turns)
    return score[owner] - turns.value
