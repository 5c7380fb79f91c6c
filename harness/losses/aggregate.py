"""From losses of tokens to one number, and metrics that are combined over batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import torch

from harness.types.hyperparameters import number, one_of


class Reduction(StrEnum):
    """Reduction of the values of several batches to one logged value."""

    TOKEN_MEAN = "token_mean"  # noqa: S105 (no password)
    """Values are sums over action tokens; the logged value is the mean over all of them."""
    MAX = "max"
    """The logged value is the largest."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of one batch or of several."""

    value: float  # a sum over action tokens, or a maximum
    # The way of combining it with the values of other batches.
    reduction: Reduction = Reduction.TOKEN_MEAN

    def combined(self, other: Metric) -> Metric:
        """Return the metric of this one's batches and the other's."""
        if self.reduction is Reduction.MAX:
            return replace(self, value=max(self.value, other.value))
        return replace(self, value=self.value + other.value)

    def reduced(self, num_tokens: float) -> float:
        """Return the value for the log; `num_tokens` is the number of action tokens."""
        return self.value if self.reduction is Reduction.MAX else self.value / num_tokens


AGGREGATIONS: Final = ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum")
"""Mean over all tokens; mean over sequences of token means; mean over sequences of token sums."""


def aggregate(
    x: torch.Tensor,
    action_mask: torch.Tensor,  # True at action tokens
    how: str = "token_mean",  # one of `AGGREGATIONS`
    *,
    # Divides the sums of `sequence_mean_token_sum`, in tokens; None stands for 1.
    constant: float | None = None,
    # Action tokens of the mini-batch if `x` is a micro-batch, so that the parts add up; None takes
    # those given.
    num_tokens: int | None = None,
    # Sequences of the mini-batch, likewise; None counts the given sequences with an action token,
    # so that padding samples do not count.
    num_sequences: int | None = None,
) -> torch.Tensor:
    """Return the values of action tokens as one number. Shapes [B, T], [B, T] -> [].

    `token_mean`: sum over all tokens / their number (DAPO, arXiv:2503.14476, Eq. 8).
    `sequence_mean_token_mean`: mean over sequences of the mean over their tokens (GRPO,
    arXiv:2402.03300; GVPO's Eq. 1). `sequence_mean_token_sum`: mean over sequences of the sum over
    their tokens / `constant` (Dr. GRPO, arXiv:2503.20783, whose code divides by the longest
    response allowed). Raises `ConfigError` if `how` is unknown or `constant` out of range.
    """
    one_of("aggregation", how, AGGREGATIONS)
    if constant is not None:
        number("constant", constant, 1)
    x = x * action_mask  # [B, T]
    if how == "token_mean":
        count = int(action_mask.sum()) if num_tokens is None else num_tokens
        return x.sum() / max(count, 1)
    if how == "sequence_mean_token_mean":
        x = x / action_mask.sum(-1, keepdim=True).clamp(min=1)  # a padding sample has no token
    elif constant is not None:
        x = x / constant
    count = int(action_mask.any(-1).sum()) if num_sequences is None else num_sequences
    return x.sum() / max(count, 1)
