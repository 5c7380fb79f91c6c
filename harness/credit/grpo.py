"""GRPO: advantages relative to the group."""

from __future__ import annotations

from typing import Literal

from harness.credit.groups import Norm, encode, standardise
from harness.credit.registry import estimator
from harness.credit.returns import episode_returns, penalties
from harness.credit.table import Floats, TurnTable
from harness.errors import ConfigError

Statistics = Literal["rollout", "turn"]


@estimator("grpo")
def grpo(
    turns: TurnTable,
    *,
    scale_by_std: bool = True,
    statistics: Statistics = "rollout",
    ddof: int = 1,
    eps: float = 1e-6,
    invalid_penalty: float = 0.1,
) -> Floats:
    """Group-relative advantage of a rollout, shared by all its turns.

    A_i = (R_i - mean(R)) / (std(R) + eps) over the rollouts of one group, with R the undiscounted
    return; `scale_by_std=False` leaves the division out. A group of one gets 0.
    Reference: Shao et al. 2024, arXiv:2402.03300, section 4.1.2 (outcome supervision).
    Departs from it: the mean over tokens is the loss's business; see harness/losses/aggregate.py.

    Args:
        turns: N turns of R rollouts.
        scale_by_std: Divide by the standard deviation, not only centre.
        statistics: `rollout` counts each rollout once, as the papers write. `turn` counts each row,
            so that long rollouts weigh more, with the invalid penalty inside the row's own score,
            as verl-agent's released code does.
        ddof: 1 for the sample standard deviation, 0 for the population's.
        eps: Added to the standard deviation.
        invalid_penalty: Subtracted from an invalid row's score; only with `statistics="turn"`.

    Returns:
        Advantage of each turn. Shape [N].
    """
    norm: Norm = "std" if scale_by_std else "mean"
    returns = episode_returns(turns)  # [R]
    if statistics == "turn":
        score = returns[turns.rollout] - penalties(turns.valid, invalid_penalty)  # [N]
        return standardise(score, encode(turns.group), norm=norm, ddof=ddof, eps=eps)
    if statistics != "rollout":
        raise ConfigError(f"statistics must be 'rollout' or 'turn', got {statistics!r}")
    group = encode(turns.group[turns.starts])  # [R]
    return standardise(returns, group, norm=norm, ddof=ddof, eps=eps)[turns.rollout]
