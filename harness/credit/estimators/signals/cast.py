"""CAST: a solver's judgement of each turn is added to the advantage of the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.shared import Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import number


@estimator("cast", needs=("process_reward",), preset={"eps": 1e-8})
@with_shared(eps=1e-8)
def cast(
    turns: TurnTable, shared: Shared, *, alpha: float = 0.1, base: Base = "grpo", **settings: Any
) -> Floats:
    """Base's advantage plus the turn's gain on the way that a solver would go. Shape [N].

    A = A_base + alpha asinh(a) / (RMS + eps), with the RMS of asinh(a) over all turns of the batch,
    those of a = 0 included. a is the column `process_reward` and meant to be N(s_t) - N(s_{t+1}),
    N the moves that a solver needs from a state: 1 for one of the best moves, 0 for one in vain,
    -N(s_t) for one after which there is no solution, and 0 where there was none before.
    Reference: Wang et al. 2026, CAST: Game Solvers as Turn-Level Teachers for LLM Agents,
    arXiv:2607.25308; its released code, Wloner0809/CAST, oracle_advantage_mapping.py. The annotator
    `solver_gain` fills the column.

    Args:
        turns: The turn table, with the column `process_reward`, in moves.
        shared: `eps` is added to the RMS.
        alpha: The weight of the solver's part; the paper's is 0.1, its code's default 0.3.
        base: The estimator of A_base; the paper's is GRPO.
        settings: The hyperparameters of the base.
    """
    number("alpha", alpha)
    advantage = base_estimator(base, settings)(turns)
    if not len(turns):
        return advantage
    assert turns.process_reward is not None
    gain = np.arcsinh(turns.process_reward)
    scale = np.sqrt((gain**2).mean()) + shared.eps
    shaped: Floats = advantage + alpha * (gain / scale if scale > 0 else gain)
    return shaped
