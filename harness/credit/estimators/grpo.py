"""GRPO: advantages relative to the group."""

from __future__ import annotations

from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats


@estimator("grpo")
@with_shared(*EPISODE, "singleton")
def grpo(turns: TurnTable, shared: Shared) -> Floats:
    """Group-relative advantage of a rollout, shared by all its turns. Shape [N].

    A_i = (R_i - mean(R)) / (std(R) + eps) over the rollouts of one group, with R the undiscounted
    return; `norm="mean"` leaves the division out. A group of one gets 0.
    Reference: Shao et al. 2024, arXiv:2402.03300, section 4.1.2 (outcome supervision).
    Departs from it: the mean over tokens is the loss's business; see harness/losses/aggregate.py.
    """
    return shared.episode(turns)
