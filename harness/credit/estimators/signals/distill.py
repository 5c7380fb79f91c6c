"""On-policy distillation: tokens are credited with how much a teacher prefers them."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.shared import rewards_to_go
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("distill", needs=("teacher_kl",))
def distill(
    turns: TurnTable,
    *,
    weight: float = 1.0,
    discount: float = 0.0,
    clip: float | None = None,
    base: Base | None = None,
    **settings: Any,
) -> Floats:
    """Minus the reverse KL divergence to a teacher, plus a base's advantage. Shape [N].

    A_t = A_base - w * sum over s >= t of discount^(s-t) * clip(d_s, -c, c), with d_t = log pi - log
    pi_T of the row, the column `teacher_kl`; A_base is 0 without a base. Rows are tokens (see
    `harness.credit.tokens`), as in the references, or turns, whose d is the sum over their tokens.
    With discount 0 a row answers for itself alone; with 1, and no clip and base, the gradient of
    the sum over a rollout's tokens is in the mean that of the divergence between rollouts.
    Reference: Agarwal et al. 2023, GKD, arXiv:2306.13649 (reverse KL on the student's own outputs);
    Gu et al. 2023, MiniLLM, arXiv:2306.08543 (its policy gradient); Lu and Thinking Machines
    Lab 2025, "On-Policy Distillation" (-d as advantage, discount 0); Zhao et al. 2026, OPSD,
    arXiv:2601.18734 (the policy with privileged information as teacher, and its objective on
    sampled tokens).
    Departs from them: d is of the sampled tokens alone; GKD's and OPSD's first objectives sum over
    the vocabulary. OPSD clips the terms of that sum; the clip here is of d.

    Args:
        turns: The table, with the column `teacher_kl`, in nats.
        weight: w.
        discount: The discount of later rows' divergence, in [0, 1].
        clip: c, at least 0 nats; None for none.
        base: The estimator of A_base, on the same rows; None for none.
        **settings: The hyperparameters of the base.
    """
    number("weight", weight)
    number("discount", discount, 0, 1)
    if clip is not None:
        number("clip", clip, 0)
    assert turns.teacher_kl is not None
    limit = np.inf if clip is None else clip
    reward = -weight * np.clip(turns.teacher_kl, -limit, limit)
    advantage = rewards_to_go(reward, turns.rollout, discount)
    return advantage if base is None else advantage + base_estimator(base, settings)(turns)
