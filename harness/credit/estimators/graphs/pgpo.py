"""PGPO: turns are compared by the gain in a potential, the mean return of the state's turns."""

from __future__ import annotations

import numpy as np

from harness.credit.groups import distance, encode, group_mean
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, SCALE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("pgpo", step_returns="reads")
@with_shared(*SCALE, *PENALTY, "gamma")
def pgpo(
    turns: TurnTable,
    shared: Shared,
    *,
    potential_gamma: float = 1.0,
    alpha: float = 2.0,
    beta: float = 1.0,
) -> Floats:
    """Advantage among turns in one state, plus that of the potential they gain. Shape [N].

    A = A_S + w A_phi (Eq. 11), without an episode part. A_S is GiGPO's step advantage (Eq. 3). The
    potential of a state is the mean step return R_t of the group's turns in it, Phi(s) (Eq. 6). A
    turn from s to s' gains gamma' Phi(s') - Phi(s), the last one of a rollout gamma' r - Phi(s)
    with its own reward r (Eq. 7); A_phi = (gain - mean) / (std + eps) over the group's turns in s
    (Eq. 8), 0 in a state visited once. w = beta (1 - p)^alpha, p the success rate of the group's
    rollouts (Eqs. 9 and 10).
    Reference: Zheng et al. 2026, PGPO: Potential-Guided Policy Optimization for Multi-Turn Agentic
    Tasks, arXiv:2609.02236, section 4 and appendix B.3. No code of it was found.
    Departs from it: states are equal when the environment's keys are, not the observations.

    Open in the paper: whether the potential has the penalty of invalid actions, which its training
    has and its equations have not. Here it is a mean of the very returns that A_S compares.

    Args:
        turns: The turn table; reads `success` and `state_key`.
        shared: The settings of A_S, whose scale is A_phi's too; `gamma` is the paper's eta.
        potential_gamma: gamma', in [0, 1].
        alpha: The exponent of the failure rate, at least 0.
        beta: The weight of A_phi in a group without success, at least 0.
    """
    number("potential_gamma", potential_gamma, 0, 1)
    number("alpha", alpha, 0)
    number("beta", beta, 0)
    state = encode(turns.group, turns.state_key)
    returns = shared.step_returns(turns)  # R_t, [N]
    potential = group_mean(returns, state)  # Phi(s), [N]
    final, _ = shared.penalised(turns)
    reached = np.where(turns.goes_on, np.roll(potential, -1), final)
    guided = shared.standardise(distance(potential_gamma * reached, potential), state)  # A_phi
    first = turns.starts
    rate = group_mean(turns.success[first].astype(np.float64), encode(turns.group[first]))
    weight: Floats = beta * (1.0 - rate) ** alpha  # w, [R]
    return shared.standardise(returns, state) + weight[turns.rollout] * guided
