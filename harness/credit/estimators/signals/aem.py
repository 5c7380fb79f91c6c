"""AEM: advantages scaled by how uncertain the policy was, compared with its group's turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.credit.groups import encode, group_mean
from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("aem", needs=("entropy",))
def aem(
    turns: TurnTable,
    *,
    lam: float = 1.0,
    least_range: float = 0.1,
    base: Base = "grpo",
    **settings: Any,
) -> Floats:
    """Base's advantage, larger for turns of low entropy, smaller for high entropy. Shape [N].

    A = alpha A_base with alpha = exp(-lambda H) / mean(exp(-lambda H)), the mean over all turns of
    the group, and H the turn's mean token entropy, moved into [0, 1] by the least and the greatest
    of the group. A group whose entropies lie within `least_range` of each other keeps the base's.
    Reference: Zhao et al. 2026, AEM: Adaptive Entropy Modulation for Multi-Turn Agentic
    Reinforcement Learning, arXiv:2605.00425v3, as its readers describe it.
    Differs from `empg` in the group as scope, and in having no bonus and no centring.

    Args:
        turns: The turn table, with the column `entropy`, in nats.
        lam: lambda, at least 0; the paper's is 1. 0 leaves the base as it is.
        least_range: The nats between a group's entropies below which they are noise; at least 0.
        base: The estimator that is scaled; the paper's are GRPO, DAPO and GSPO.
        settings: The hyperparameters of the base.
    """
    number("lam", lam, 0)
    number("least_range", least_range, 0)
    advantage = base_estimator(base, settings)(turns)
    if not len(turns):
        return advantage
    assert turns.entropy is not None
    group = encode(turns.group)
    low, high = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)  # [G]
    np.minimum.at(low, group, turns.entropy)
    np.maximum.at(high, group, turns.entropy)
    span = (high - low)[group]
    varied = (span >= least_range) & (span > 0)
    scaled = np.divide(turns.entropy - low[group], span, out=np.zeros(len(turns)), where=varied)
    certainty = np.exp(-lam * scaled)  # [N], not yet divided by its mean
    modulated: Floats = advantage * certainty / group_mean(certainty, group)
    return modulated
