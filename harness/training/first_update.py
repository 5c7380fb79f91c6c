"""Stops a run whose importance ratios are not 1 at the first update, before any weight moved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch

from harness.config import Config
from harness.inference.old_logprobs import has_old_logprobs
from harness.model.learning_mode import drops_in_learning
from harness.model.packing import TokenBatch
from harness.model.policy import Policy
from harness.training.phases import values
from harness.types.errors import TrainingError

_FAR: Final = 20.0
"""Nats from which on a factor is written as a power."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Distances of log-probabilities from those at generation, |log p - log p_old|, in nats."""

    largest: float = 0.0  # of any token
    total: float = 0.0  # sum over tokens

    def joined(self, other: Drift | None) -> Drift:
        """Return the drift of these tokens and of another batch's."""
        if other is None:
            return self
        return Drift(max(self.largest, other.largest), self.total + other.total)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The drift that rounding explains."""

    largest: float  # largest ratio of any token, or its inverse
    mean: float  # mean distance, in nats


# Measured on the CPU, largest and mean distance in nats. float32: below 1.1e-4 and 1.3e-5 in random
# models of 2 to 24 layers (Qwen2, Qwen3, Llama, Gemma 3, GPT-2, Qwen2-MoE; padded, packed, shared
# prefixes). mixed: 0.046 and 0.0034 in the demo's model after its warm start, up to 0.037 and 0.008
# in random ones of common scale (std up to 0.1). bfloat16: up to 0.5 and 0.06 in dense ones of
# std 0.3 (1.26 and 0.12 in one of 24 layers). In half precision one token in thousands may be nats
# away, as where a router chooses another expert (4.5 and 1.1 in Qwen2-MoE), so there the mean
# decides; a wrong temperature or scale moves it by tenths.
TOLERANCES: Final = {
    "float32": Tolerance(1.01, math.inf),
    "mixed": Tolerance(math.inf, 0.2),
    "bfloat16": Tolerance(math.inf, 0.2),
}

_MAY_DIFFER: Final = (
    "optimizer.packing",
    "policy.attention",
    "policy.precision",
    "policy.chat_template_kwargs",
)


@dataclass(frozen=True, slots=True)
class FirstUpdateAlarm:
    """Checks the first importance ratios; `settings` lists possible causes with their values."""

    precision: str
    settings: str = ""

    def check(self, drift: Drift, num_tokens: float) -> None:
        """Raise `TrainingError` if the drift in all processes is more than rounding explains."""
        limit, mean = TOLERANCES[self.precision], drift.total / num_tokens
        if drift.largest <= math.log(limit.largest) and mean <= limit.mean:
            return
        far, largest = drift.largest >= _FAR, drift.largest
        factor = f"e^{largest:.0f}" if far else f"{math.exp(largest):.4g}"
        by_mean = math.isinf(limit.largest)
        explained = f"a mean of {limit.mean:g}" if by_mean else f"a factor of {limit.largest:g}"
        raise TrainingError(
            "the first update does not see the policy that played: before any weight moved, "
            f"importance ratios are off 1 by a factor of up to {factor} (mean "
            f"|log ratio| {mean:.3g} over {num_tokens:.0f} tokens), where rounding in "
            f"{self.precision} explains {explained}. Generation and training compute something "
            "else: packed rows, shared prefixes, dropout, the chat template's tokens or the "
            f"precision. Change one of {self.settings}"
        )


@torch.no_grad()
def drift_of(logprob: torch.Tensor, batch: TokenBatch) -> Drift:
    """Return the drift of a batch's action tokens. Shape of `logprob`: [B, T]."""
    distance = (logprob - batch.old_logprob).abs() * batch.action_mask  # [B, T], 0 elsewhere
    return Drift(float(distance.max()), float(distance.sum()))


def alarm_of(
    config: Config, policy: Policy, *, is_resumed: bool = False
) -> FirstUpdateAlarm | None:
    """Return the alarm of a run; None if its first ratios need not be 1.

    They differ from 1 if another engine or older weights sample, if the rollouts are not the
    policy's, or if adapters have dropout in the update alone. A gateway's resumed run learns first
    from the rollouts that its checkpoint has kept, which were played before the last update.
    """
    if is_resumed and config.rollout.gateway is not None:
        return None
    rollout = config.rollout
    on_policy = has_old_logprobs(config) and rollout.backend == "hf" and not rollout.ahead
    if not on_policy or drops_in_learning(policy.model):
        return None
    return FirstUpdateAlarm(policy.precision, values(config, _MAY_DIFFER))
