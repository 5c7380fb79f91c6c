"""GAGPO: generalised advantages over values that are the means of the group's own returns."""

from __future__ import annotations

from dataclasses import replace

from harness.credit.estimators.gae import temporal_advantages
from harness.credit.groups import Norm, encode, group_mean, standardise
from harness.credit.registry import estimator
from harness.credit.returns import PenaltyOn, penalised, rewards_to_go
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("gagpo")
def gagpo(
    turns: TurnTable,
    *,
    gamma: float = 0.95,
    lam: float = 0.95,
    norm: Norm = "std",
    ddof: int = 1,
    eps: float = 1e-6,
    invalid_penalty: float = 0.1,
    penalty_on: PenaltyOn = "step",
) -> Floats:
    """Generalised advantage of each turn over grouped values, relative to the group's turns.

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
        turns: N turns of R rollouts; reads `state_key`.
        gamma: Discount, in [0, 1].
        lam: lambda, in [0, 1].
        norm: Divide by the standard deviation (`std`) or only centre (`mean`).
        ddof: 1 for the sample standard deviation, 0 for the population's.
        eps: Added to the standard deviation; at least 0.
        invalid_penalty: Of an invalid turn, at least 0.
        penalty_on: What it is subtracted from: the advantage of the `row` before it is compared, or
            the rollout's `return`, and so the values too; `step` is nothing here.

    Returns:
        Advantage of each turn. Shape [N].

    Raises:
        ConfigError: A hyperparameter is out of its range.
    """
    reward, local = penalised(turns, invalid_penalty, penalty_on)
    to_go = rewards_to_go(reward, turns.rollout, gamma)
    value = group_mean(to_go, encode(turns.group, turns.state_key))
    advantage = temporal_advantages(replace(turns, reward=reward, value=value), gamma, lam)
    paid = advantage - local if penalty_on == "row" else advantage
    return standardise(paid, encode(turns.group), norm=norm, ddof=ddof, eps=eps)
