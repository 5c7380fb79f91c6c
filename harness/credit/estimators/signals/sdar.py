"""SDAR: a base's advantage, plus a gate that opens where a teacher prefers the token."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("sdar", needs=("teacher_kl",))
def sdar(
    turns: TurnTable,
    *,
    weight: float = 0.01,
    sharpness: float = 5.0,
    base: Base = "grpo",
    **settings: Any,
) -> Floats:
    """Base's advantage plus w sigmoid(beta (log pi_T - log pi)) of the row. Shape [N].

    pi_T is the policy that has been told more. The gate is never negative: every token that was
    sampled is made more probable, those that the teacher prefers by up to w, others by less.
    Reference: Self-Distilled Agentic Reinforcement Learning 2026, arXiv:2605.15155, by its released
    code, ZJU-REAL/SDAR: its loss adds w times the token mean of g (log pi_T - log pi), where g, the
    gate, has no gradient. So the gradient is that of an advantage w g. w is 0.01 in its scripts.
    Departs from it: the gate is of the policy that played, the code's of the one that learns, and
    the ratio is clipped here; before a step's first update both are equal.

    Args:
        turns: The table, with the column `teacher_kl`, in nats; rows are tokens, as in the code.
        weight: w.
        sharpness: beta, at least 0; with 0 every gate is half open.
        base: The estimator that the gate adds to.
        **settings: The hyperparameters of the base.
    """
    number("weight", weight)
    number("sharpness", sharpness, 0)
    assert turns.teacher_kl is not None
    # tanh, for exp would overflow where a teacher rules a token out.
    gate = 0.5 * (1.0 + np.tanh(-0.5 * sharpness * turns.teacher_kl))
    advantage: Floats = base_estimator(base, settings)(turns) + weight * gate
    return advantage
