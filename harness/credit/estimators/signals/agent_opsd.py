"""AgentOPSD: a base's advantage, more of it at turns that moved the belief in success its way."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from harness.credit.groups import label_mean, standardise
from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.shared import rewards_to_go
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number

_PRIOR: Final = 1e-4
_BELIEF: Final = 1e-6
"""Least distances of a prior and of a belief from 0 and 1, as in the released code."""


@estimator("agent_opsd", needs=("teacher_kl",))
def agent_opsd(
    turns: TurnTable, *, band: float = 0.2, mix: float = 0.5, base: Base = "grpo", **settings: Any
) -> Floats:
    """Base's advantage times 1 - l + l m, m what a turn did to the belief in success. Shape [N].

    The belief is V_k = sigmoid(logit V_0 + sum over j <= k of log pi_T - log pi of turn j), with
    pi_T the policy that has been told more and V_0 the share of the group that succeeded. q_k = V_k
    - V_{k-1} is z-scored within the rollout, and m = clip(1 + b sign(A) z, 1 - b, 1 + b): turns
    that moved the belief as the outcome did count more, and no advantage changes its sign.
    Reference: Wang et al. 2026, AgentOPSD: Recursive Self-Distillation for Agentic Reinforcement
    Learning, arXiv:2608.05987, Eq. 6, by its released code, ZethWang/AgentOPSD
    (`compute_opsd_turn_advantage` as its scripts call it: `belief_mult`, `signed`).
    Departs from it: V_0 is the share of successes. The code takes the group's mean return, which is
    10 for a success, so that one success in eight already puts V_0 at its bound, 0.9999.

    Args:
        turns: The table, with the column `teacher_kl`, in nats, summed over each turn's tokens.
        band: b, from 0 to 1.
        mix: l, from 0 (the base alone) to 1.
        base: The estimator that is weighted, an episode-level one.
        **settings: The hyperparameters of the base.
    """
    number("band", band, 0, 1)
    number("mix", mix, 0, 1)
    advantage = base_estimator(base, settings)(turns)
    revision = _revisions(turns)
    z = standardise(revision, turns.rollout, norm="std", ddof=0, eps=_BELIEF)
    factor = np.clip(1 + band * np.sign(advantage) * z, 1 - band, 1 + band)
    weighted: Floats = advantage * (1 - mix + mix * factor)
    return weighted


def _revisions(turns: TurnTable) -> Floats:
    """Return what each turn did to the belief, V_k - V_{k-1}; shape [N]."""
    assert turns.teacher_kl is not None
    if not len(turns):
        return np.zeros(0)
    first = turns.starts
    share = label_mean(turns.success[first].astype(np.float64), turns.group[first])  # [G]
    prior = np.clip(share, _PRIOR, 1 - _PRIOR)[turns.group]  # [N]
    evidence = -turns.teacher_kl
    to_go = rewards_to_go(evidence, turns.rollout)
    # Sums up to a turn: those from the start, less those after it.
    so_far = to_go[first][turns.rollout] - to_go + evidence
    logit = np.log(prior / (1 - prior)) + so_far
    belief = np.clip(0.5 * (1.0 + np.tanh(0.5 * logit)), _BELIEF, 1 - _BELIEF)
    before = np.where(turns.turn == 0, prior, np.roll(belief, 1))
    return belief - before
