"""The measured advantage of each turn: what continuations from before and after it say."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from harness.credit.estimators.gae import penalised_advantages
from harness.credit.registry import estimator
from harness.credit.shared import Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats
from harness.types.hyperparameters import one_of

Scale = Literal["none", "rms", "whiten"]


@estimator("oracle", needs=("state_value",), preset={"gamma": 1.0, "invalid_penalty": 0.0})
@with_shared("ddof", "penalty_on", gamma=1.0, eps=1e-8, invalid_penalty=0.0)
def oracle(turns: TurnTable, shared: Shared, *, scale: Scale = "none") -> Floats:
    """Advantage of each turn over the measured values of the states around it. Shape [N].

    A_t = r_t + gamma * V_{t+1} - V_t, where V is the mean return of continuations by the current
    policy and V = 0 behind the rollout's last turn. It is the truth that `harness credit audit`
    measures, times the scale of the rewards; its error falls with the number of continuations.
    Reference: Kazemnejad et al. 2024, VinePPO, arXiv:2410.01679, section 4, with turns for
    reasoning steps. Its released code (McGill-NLP/VinePPO, treetune/trainers/ppo_trainer.py)
    whitens the advantages.
    Departs from it: there all tokens of a device's batch, and of the other devices', count, so
    that long steps weigh more; `scale="whiten"` counts each row of the whole batch once.

    Args:
        turns: The table, with the column `state_value`.
        shared: `gamma` is the discount of the continuations' returns, too. `eps` is added to the
            root mean square, too. The cost of an invalid turn is measured already, so that
            `invalid_penalty` is 0; it is subtracted as in `gae`.
        scale: `none`; `rms` divides by the root mean square over the batch, which leaves signs as
            they are; `whiten` subtracts the batch's mean and divides by its standard deviation.
    """
    one_of("scale", scale, ("none", "rms", "whiten"))
    advantage = penalised_advantages(replace(turns, value=turns.state_value), shared, lam=0.0)
    if scale == "whiten":
        return shared.whiten(advantage, np.ones(len(turns), np.bool_))
    if scale == "rms" and len(turns):
        advantage = advantage / (np.sqrt(np.mean(advantage**2)) + shared.eps)
    return advantage
