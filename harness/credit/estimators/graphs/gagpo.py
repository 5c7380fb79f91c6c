"""GAGPO: generalised advantages over values that are the means of the group's own returns."""

from __future__ import annotations

from dataclasses import replace

from harness.credit.estimators.gae import penalised_advantages
from harness.credit.groups import encode, group_mean
from harness.credit.registry import estimator
from harness.credit.shared import PENALTY, SCALE, Shared, rewards_to_go, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("gagpo")
@with_shared("gamma", *SCALE, *PENALTY)
def gagpo(turns: TurnTable, shared: Shared, *, lam: float = 0.95) -> Floats:
    """Generalised advantage over grouped values, relative to the group's turns. Shape [N].

    The value of a state is the mean discounted return, V(s) = mean of G_t, over all turns that the
    group took in s. Over it goes `gae`: delta_t = r_t + gamma V(s_{t+1}) - V(s_t), and
    A_t = delta_t + gamma lambda A_{t+1}; V and A are 0 behind the last turn. The advantage is
    (A - mean) / (std + eps) over all turns of the group. There is no episode term.
    Reference: Zhu et al. 2026, GAGPO: Generalized Advantage Grouped Policy Optimization,
    arXiv:2605.13217, as its readers describe it; no code is public.
    Departs from it: states are equal when the environment's keys are, not their texts.

    Open in the text at hand: gamma and lambda. 0.95 is a choice for both; lambda 0 is an ablation
    there, and 1 one of the values tried, and both are worse.

    Args:
        turns: The turn table; reads `state_key`.
        shared: The settings of values and comparison. The penalty is subtracted from the advantage
            of the `row` before it is compared, or from the rollout's `return`, and so from the
            values too; `step` is nothing here.
        lam: lambda, in [0, 1].
    """
    reward, _ = shared.penalised(turns)
    to_go = rewards_to_go(reward, turns.rollout, shared.gamma)
    value = group_mean(to_go, encode(turns.group, turns.state_key))  # V(s_t)
    advantage = penalised_advantages(replace(turns, value=value), shared, lam)
    return shared.standardise(advantage, encode(turns.group))
