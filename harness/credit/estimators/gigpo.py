"""GiGPO: groups within groups."""

from __future__ import annotations

from harness.credit.estimators.grpo import Singleton, Statistics, episode_part
from harness.credit.groups import Norm, standardise
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn, step_returns
from harness.credit.state_groups import states
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("gigpo", step_returns="reads")
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
    penalty_on: PenaltyOn = "step",
    singleton: Singleton = "zero",
    similarity: float | None = None,
) -> Floats:
    """Episode advantage plus the advantage among turns taken in the same state.

    A = A_E + omega * A_S. A_E is `grpo`. A_S(s, t) = (R_t - mean) / (std + eps) over all turns of
    the group that were taken in state s, with R_t the discounted return from the turn on, less the
    invalid penalty. A state visited once gets A_S = 0.
    Reference: Feng et al. 2025, GiGPO, arXiv:2505.10978; as SCPO recalls it, Eqs. 1 to 3 there.
    Departs from it: states are equal when their true state's keys are, not their texts. Its code's
    grouping by similar texts depends on the order of the rows; here `similarity` does not.

    Args:
        turns: N turns of R rollouts.
        norm: Divide both parts by their standard deviations (`std`) or only centre them (`mean`).
        statistics: Of the episode part; see `grpo`.
        ddof: 1 for sample standard deviations, 0 for the population's.
        eps: Added to the standard deviations; at least 0.
        gamma: Discount of the step returns, in [0, 1].
        step_weight: omega.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: What it is subtracted from: the `step` return of the turn and of no other, the
            whole `row`, which is that and the turn's score in the episode part, or the `return`, of
            the rollout and of all turns up to the invalid one. See `grpo`.
        singleton: Of the episode part; see `grpo`.
        similarity: Take states for equal whose texts have at least this ratio, in (0, 1]; None
            compares keys alone. See `harness.credit.state_groups.states`.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
    """
    number("step_weight", step_weight)
    episode = episode_part(
        turns, norm, statistics, ddof, eps, invalid_penalty, penalty_on, singleton
    )
    to_go = step_returns(turns, gamma, invalid_penalty, penalty_on)  # [N]
    anchor = states(turns, similarity)  # [N]
    return episode + step_weight * standardise(to_go, anchor, norm=norm, ddof=ddof, eps=eps)
