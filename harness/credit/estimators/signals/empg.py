"""EMPG: advantages scaled by how certain the policy was."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from harness.credit.groups import distance, group_mean
from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number

_SPAN: Final = 1e-8
"""Added to the range of entropies, in nats."""


@estimator("empg", needs=("entropy",))
def empg(
    turns: TurnTable,
    *,
    base: Base = "grpo",
    k: float = 1.0,
    k_future: float = 1.0,
    zeta: float = 0.05,
    **settings: Any,
) -> Floats:
    """Base's advantage, scaled by the policy's certainty, plus a bonus for later. Shape [N].

    A = g_t * A_base + zeta * exp(-k' H_{t+1}), less the mean over the batch.
    g_t = exp(-k H_t) / mean(exp(-k H)), and H is the turn's mean token entropy, moved into [0, 1]
    by the least and the greatest of the batch. The last turn of a rollout gets no bonus.
    Reference: Wang et al. 2025, Entropy-Modulated Policy Gradients, arXiv:2509.09265 (self-
    calibrating gradient scaling and future clarity bonus).
    Departs from it: a group of one has base advantage 0, but keeps the bonus. The defaults of k, k'
    and zeta are those of public code.

    Args:
        turns: The turn table, with the column `entropy`, in nats.
        base: The estimator that is scaled, an episode-level one.
        k: The sharpness of the scaling, at least 0; 0 leaves the base as it is.
        k_future: k', the sharpness of the bonus, at least 0.
        zeta: The weight of the bonus; 0 for none.
        **settings: The hyperparameters of the base.
    """
    number("k", k, 0)
    number("k_future", k_future, 0)
    number("zeta", zeta)
    advantage = base_estimator(base, settings)(turns)
    if not len(turns):
        return advantage
    assert turns.entropy is not None
    low, high = turns.entropy.min(), turns.entropy.max()
    entropy = (turns.entropy - low) / (high - low + _SPAN)  # [N], in [0, 1]
    scale = np.exp(-k * entropy)
    clarity = np.where(turns.goes_on, np.exp(-k_future * np.roll(entropy, -1)), 0.0)
    modulated: Floats = advantage * scale / scale.mean() + zeta * clarity
    whole = np.zeros(len(turns), dtype=np.int64)
    return distance(modulated, group_mean(modulated, whole))
