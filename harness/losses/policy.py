"""The token-level clipped policy loss of PPO, GRPO and GiGPO."""

from __future__ import annotations

import torch

from harness.errors import ConfigError
from harness.losses.aggregate import token_mean
from harness.losses.clip import clipped_share, clipped_surrogate
from harness.losses.kl import k3
from harness.losses.registry import loss
from harness.packing import TokenBatch


@loss("clipped")
def clipped(
    logprob: torch.Tensor,
    batch: TokenBatch,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    kl_coefficient: float = 0.0,
    num_tokens: int | None = None,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Clipped surrogate with one ratio per token, averaged over tokens, plus a k3 penalty.

    L = mean_t[ -min(r_t A_t, clip(r_t, 1 - low, 1 + high) A_t) + beta * k3_t ], with the ratio
    r_t = exp(log p(t) - log p_old(t)).
    Reference: PPO, arXiv:1707.06347, Eq. 7; KL penalty as in GRPO, arXiv:2402.03300, Eq. 4.

    Args:
        logprob: Log-probabilities under the policy being trained. Shape [B, T].
        batch: The tokens; `reference_logprob` is needed if `kl_coefficient` is not 0.
        clip_low: Lower clip range.
        clip_high: Upper clip range.
        kl_coefficient: beta.
        num_tokens: Action tokens of the mini-batch that this batch is a part of.

    Returns:
        The loss (shape []), and sums over the batch's action tokens for logging: `clipped`,
        `kl_reference`, `kl_old` (k3 between the policy and the one that generated), `num_tokens`.

    Raises:
        ConfigError: A penalty is asked for but the batch has no reference.
    """
    mask = batch.action_mask
    ratio = torch.where(mask, logprob - batch.old_logprob, 0.0).exp()  # [B, T]
    per_token = -clipped_surrogate(ratio, batch.advantage, clip_low, clip_high)
    metrics = {"num_tokens": float(mask.sum())}
    with torch.no_grad():
        stopped = clipped_share(ratio, batch.advantage, clip_low, clip_high) & mask
        metrics["clipped"] = float(stopped.sum())
        metrics["kl_old"] = float((k3(logprob, batch.old_logprob) * mask).sum())
    if kl_coefficient:
        if batch.reference_logprob is None:
            raise ConfigError("kl_coefficient needs a reference policy, the batch has none")
        penalty = k3(logprob, batch.reference_logprob)
        per_token = per_token + kl_coefficient * penalty
        metrics["kl_reference"] = float((penalty.detach() * mask).sum())
    return token_mean(per_token, mask, num_tokens), metrics
