"""GiGPO: groups within groups."""

from __future__ import annotations

from harness.credit.groups import states
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("gigpo", step_returns="reads")
@with_shared(*EPISODE, "gamma", "singleton")
def gigpo(
    turns: TurnTable, shared: Shared, *, step_weight: float = 1.0, similarity: float | None = None
) -> Floats:
    """Episode advantage plus the advantage among turns taken in the same state. Shape [N].

    A = A_E + omega * A_S. A_E is `grpo`. A_S(s, t) = (R_t - mean) / (std + eps) over all turns of
    the group that were taken in state s, with R_t the discounted return from the turn on, less the
    invalid penalty. A state visited once gets A_S = 0.
    Reference: Feng et al. 2025, GiGPO, arXiv:2505.10978; as SCPO recalls it, Eqs. 1 to 3 there.
    Departs from it: states are equal when their true state's keys are, not their texts. Its code's
    grouping by similar texts depends on the order of the rows; here `similarity` does not.

    Args:
        turns: The turn table; reads the states.
        shared: The settings of both parts; `statistics` and `singleton` of A_E alone.
        step_weight: omega.
        similarity: The least ratio, in (0, 1], of texts whose states count as equal; None compares
            keys alone. See `harness.credit.groups.states`.
    """
    number("step_weight", step_weight)
    anchor = states(turns, similarity)  # [N]
    step = shared.standardise(shared.step_returns(turns), anchor)
    return shared.episode(turns) + step_weight * step
