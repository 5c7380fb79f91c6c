"""OPRL: episode advantages plus advantages of implicit step rewards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from harness.credit.estimators.rloo import leave_one_out
from harness.credit.groups import distance, encode, label_mean
from harness.credit.registry import Base, base_estimator, estimator, hyperparameters_of
from harness.credit.shared import Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.hyperparameters import number, one_of

StepNorm = Literal["std", "mean", "rloo", "rloo_first"]
Fusion = Literal["advantage", "reward"]


@estimator("oprl", needs=("process_reward",))
@with_shared("ddof", "eps")
def oprl(
    turns: TurnTable,
    shared: Shared,
    *,
    alpha: float = 1.0,
    step_norm: StepNorm = "std",
    fusion: Fusion = "advantage",
    base: Base = "grpo",
    **settings: Any,
) -> Floats:
    """Base's advantage plus that of a turn's process reward among its group's turns. Shape [N].

    A = A_E + alpha A_S (Eq. 5), with A_E the base's (Eq. 3 for `grpo`) and
    A_S = (r - mean) / (std + eps) over the process rewards r of all turns of the group's rollouts
    (Eq. 4). A group of one turn gets A_S = 0.
    Reference: Liu et al., Online Process Reward Learning for Agentic Reinforcement Learning (OPRL),
    section 3.1. The process reward is Eq. 1, beta (log pi_phi - log pi_old) of the turn's response;
    an annotator fills it.
    Departs from it: eps, and the choices below, where it is silent.

    Eq. 4 is written for GRPO, and the paper trains WebShop and Sokoban on RLOO without saying what
    A_S is then. Here it stays Eq. 4 on every base; `step_norm` has the other readings.

    On a table of tokens (`harness.credit.tokens.token_table` with a process reward for each token)
    this is the ablation with token-level process rewards: mean and std are over the group's tokens,
    while the returns, and so A_E, are those of the rollouts.

    Args:
        turns: The turn table, with the column `process_reward`.
        shared: `ddof` of A_S, and of the base if it has one; `eps` of A_S alone.
        alpha: The weight of A_S; the paper's is 1 throughout.
        step_norm: `std` as above. `mean` only centres. `rloo` is (r - mean) M/(M - 1) over the M
            turns of the group, the mean of the others as baseline. `rloo_first` is
            (r - mean of first turns' rewards) n/(n - 1) for n rollouts, as the released code does;
            0 for one rollout.
        fusion: `advantage` as above. `reward` is the ablation with merged rewards: alpha r is added
            to the turns' rewards and the base's advantage of that is all.
        base: The estimator of A_E: `grpo`, `rloo`, `dr_grpo`, `reinforce_pp` or another. Given as a
            mapping it may have its own `ddof` and `eps`.
        settings: The hyperparameters of the base.
    """
    number("alpha", alpha)
    one_of("step_norm", step_norm, ("std", "mean", "rloo", "rloo_first"))
    one_of("fusion", fusion, ("advantage", "reward"))
    assert turns.process_reward is not None  # the registry has refused such tables
    episode = base_estimator(base, {**_known_to(base, ddof=shared.ddof), **settings})
    if fusion == "reward":
        return episode(replace(turns, reward=turns.reward + alpha * turns.process_reward))
    step = _step_advantage(turns, turns.process_reward, step_norm, shared)
    return episode(turns) + alpha * step


def _known_to(base: Base, **settings: Any) -> dict[str, Any]:
    """Return the settings that the base has as well."""
    name, given = (base, {}) if isinstance(base, str) else (base["name"], base)
    known = hyperparameters_of(name, given)
    return {key: value for key, value in settings.items() if key in known}


def _step_advantage(turns: TurnTable, reward: Floats, norm: StepNorm, shared: Shared) -> Floats:
    group = encode(turns.group)  # [N]
    if norm == "rloo":
        return leave_one_out(reward, group)
    if norm == "rloo_first":
        return _against_first_turns(turns, reward, group)
    return replace(shared, norm=norm).standardise(reward, group)


def _against_first_turns(turns: TurnTable, reward: Floats, group: Ints) -> Floats:
    first = group[turns.starts]  # [R]
    rollouts = np.bincount(first)
    baseline = label_mean(reward[turns.starts], first)
    factor = np.where(rollouts > 1, rollouts / np.maximum(rollouts - 1, 1), 0.0)
    return distance(reward, baseline[group]) * factor[group]
