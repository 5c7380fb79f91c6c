"""GiGPO: groups within groups."""

from __future__ import annotations

from harness.credit.groups import Norm, encode, standardise
from harness.credit.grpo import Statistics, grpo
from harness.credit.registry import estimator
from harness.credit.returns import step_returns
from harness.credit.table import Floats, TurnTable


@estimator("gigpo")
def gigpo(
    turns: TurnTable,
    *,
    norm: Norm = "std",
    statistics: Statistics = "rollout",
    ddof: int = 1,
    eps: float = 1e-6,
    gamma: float = 0.95,
    step_weight: float = 1.0,
    invalid_penalty: float = 0.1,
) -> Floats:
    """Episode advantage plus the advantage among turns taken in the same state.

    A = A_E + omega * A_S. A_E is `grpo`. A_S(s, t) = (R_t - mean) / (std + eps) over all turns of
    the group that were taken in state s, with R_t the discounted return from the turn on, less the
    invalid penalty. A state visited once gets A_S = 0.
    Reference: Feng et al. 2025, GiGPO, arXiv:2505.10978, Eqs. 6 to 8.
    Departs from it: states are equal when their true state's keys are, not their texts; so its
    grouping of texts by similarity is not there.

    Args:
        turns: N turns of R rollouts.
        norm: Divide both parts by their standard deviations (`std`) or only centre them (`mean`).
        statistics: Of the episode part; see `grpo`.
        ddof: 1 for sample standard deviations, 0 for the population's.
        eps: Added to the standard deviations.
        gamma: Discount of the step returns, in [0, 1].
        step_weight: omega.
        invalid_penalty: Subtracted from the step return of an invalid turn, and from no other.

    Returns:
        Advantage of each turn. Shape [N].
    """
    episode = grpo(
        turns,
        scale_by_std=norm == "std",
        statistics=statistics,
        ddof=ddof,
        eps=eps,
        invalid_penalty=invalid_penalty,
    )
    to_go = step_returns(turns, gamma, invalid_penalty)  # [N]
    anchor = encode(turns.group, turns.state_key)  # [N]
    return episode + step_weight * standardise(to_go, anchor, norm=norm, ddof=ddof, eps=eps)
