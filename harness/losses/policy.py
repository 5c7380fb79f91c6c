"""The policy loss, made of four independent choices: ratio, clip, aggregation and penalties."""

from __future__ import annotations

import torch

from harness.losses.aggregate import Metric, Reduction, aggregate
from harness.losses.registry import loss
from harness.losses.surrogate import (
    ESTIMATORS,
    RATIOS,
    clipped_share,
    clipped_surrogate,
    importance_ratio,
    k3,
)
from harness.model.packing import TokenBatch
from harness.types.errors import ConfigError
from harness.types.hyperparameters import number, one_of


@loss("clipped", linear_unless=("kl_coefficient", "entropy_coefficient"))
def clipped(
    logprob: torch.Tensor,
    batch: TokenBatch,
    *,
    ratio: str = "token",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
    aggregation: str = "token_mean",
    constant: float | None = None,
    kl: str = "k3",
    kl_coefficient: float = 0.0,
    entropy_coefficient: float = 0.0,
    entropy: torch.Tensor | None = None,
    num_tokens: int | None = None,
    num_sequences: int | None = None,
) -> tuple[torch.Tensor, dict[str, Metric]]:
    """Clipped surrogate loss of PPO, GRPO, DAPO, GSPO and related methods, with penalties.

    L = aggregate_t[ -min(r_t A_t, clip(r_t, 1 - low, 1 + high) A_t) + beta KL_t - eta H_t ], with
    the ratio r of `importance_ratio` and the mean of `aggregate`.
    Reference: PPO, arXiv:1707.06347, Eq. 7; KL penalty as in GRPO, arXiv:2402.03300, Eq. 4. OPRL's
    Eq. 6, a mean over turns, is ratio "turn" and aggregation "sequence_mean_token_mean" in the
    context "window".

    Args:
        logprob: Log-probabilities under the policy being trained. Shape [B, T].
        batch: The tokens; `reference_logprob` is needed if `kl_coefficient` is not 0.
        ratio: "token", "turn" or "sequence".
        clip_low: Lower clip range, in [0, 1].
        clip_high: Upper clip range, 0 or more.
        dual_clip: The ratio's upper bound where A is negative, 1 or more; None for none.
        aggregation: "token_mean", "sequence_mean_token_mean" or "sequence_mean_token_sum".
        constant: Divisor of "sequence_mean_token_sum": the longest response in tokens; None for 1.
        kl: "k1", "k2" or "k3".
        kl_coefficient: beta, 0 or more.
        entropy_coefficient: eta, 0 or more.
        entropy: H, with gradient; needed if `entropy_coefficient` is not 0. Shape [B, T].
        num_tokens: Action tokens of the mini-batch that this batch is a part of.
        num_sequences: Sequences of that mini-batch.

    Returns:
        The loss (shape []), and metrics of the action tokens: the share of clipped ones
        (`clipped_share`), the KL divergences `kl_reference` and `kl_old` (from the policy of the
        rollouts to this one), and the largest ratio, `ratio_max`.

    Raises:
        ConfigError: A hyperparameter is out of range, or a penalty lacks its input: reference
            log-probabilities or entropies.
    """
    one_of("ratio", ratio, RATIOS)
    number("clip_low", clip_low, 0, 1)
    number("clip_high", clip_high, 0)
    if dual_clip is not None:
        number("dual_clip", dual_clip, 1)
    mask, bounds = batch.action_mask, (clip_low, clip_high, dual_clip)
    ratios = importance_ratio(logprob, batch.old_logprob, batch.turn, ratio)  # [B, T]
    per_token = -clipped_surrogate(ratios, batch.advantage, *bounds)
    metrics = _ratio_metrics(logprob, ratios, batch, bounds)
    penalty = _kl_penalty(logprob, batch, kl, kl_coefficient)
    if penalty is not None:
        per_token = per_token + kl_coefficient * penalty
        metrics["kl_reference"] = Metric(float((penalty.detach() * mask).sum()))
    bonus = _entropy_bonus(entropy, entropy_coefficient)
    if bonus is not None:
        per_token = per_token - bonus
    counts = {"num_tokens": num_tokens, "num_sequences": num_sequences}
    return aggregate(per_token, mask, aggregation, constant=constant, **counts), metrics


@torch.no_grad()
def _ratio_metrics(
    logprob: torch.Tensor,
    ratios: torch.Tensor,
    batch: TokenBatch,
    bounds: tuple[float, float, float | None],
) -> dict[str, Metric]:
    mask = batch.action_mask
    stopped = clipped_share(ratios, batch.advantage, *bounds) & mask
    return {
        "clipped_share": Metric(float(stopped.sum())),
        "kl_old": Metric(float((k3(batch.old_logprob, logprob) * mask).sum())),
        "ratio_max": Metric(float(ratios.where(mask, 0.0).max()), Reduction.MAX),
    }


def _entropy_bonus(entropy: torch.Tensor | None, coefficient: float) -> torch.Tensor | None:
    """Return eta H_t of each token, None if eta is 0. Shape [B, T]."""
    number("entropy_coefficient", coefficient, 0)
    if not coefficient:
        return None
    if entropy is None:
        raise ConfigError("entropy_coefficient needs the entropies of tokens, there are none")
    return coefficient * entropy


def _kl_penalty(
    logprob: torch.Tensor, batch: TokenBatch, kind: str, coefficient: float
) -> torch.Tensor | None:
    """Return the KL estimate of each token, None if its coefficient is 0. Shape [B, T]."""
    one_of("kl", kind, tuple(ESTIMATORS))
    number("kl_coefficient", coefficient, 0)
    if not coefficient:
        return None
    if batch.reference_logprob is None:
        raise ConfigError("kl_coefficient needs a reference policy, the batch has none")
    return ESTIMATORS[kind](logprob, batch.reference_logprob)
