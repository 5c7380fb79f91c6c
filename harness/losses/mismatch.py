"""Corrections of the mismatch between the policy and the engine that samples its tokens.

With r_t = pi(y_t) / pi_sampler(y_t), the weight of a token multiplies its advantage and has no
gradient:

- truncated importance sampling, min(r_t, C): Yao et al. 2025, "Your Efficient RL Framework Secretly
  Brings You Off-Policy RL Training";
- masked importance sampling, r_t if r_t <= C, else 0: Liu et al. 2025, "When Speed Kills Stability:
  Demystifying RL Collapse from the Training-Inference Mismatch"; with a lower bound too it is
  IcePop's two-sided mask, Ring-1T, arXiv:2510.18855.

Rejection leaves out turns or sequences whose ratio, the product or the geometric mean of their
tokens', is out of bounds: Liu et al. 2025, as above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from harness.config.rollout_settings import Correction
from harness.losses.aggregate import Metric
from harness.losses.surrogate import LARGEST_LOG, importance_ratio
from harness.model.packing import TokenBatch


def weights(ratio: torch.Tensor, config: Correction) -> torch.Tensor:
    """Return the importance weights of ratios r, of any shape."""
    if config.cap is None:
        return torch.ones_like(ratio)
    if not config.masks:
        return ratio.clamp(max=config.cap)
    return ratio.where(~out_of_bounds(ratio, config), 0.0)


def out_of_bounds(ratio: torch.Tensor, config: Correction) -> torch.Tensor:
    """Return where the weight is not the ratio, because that is too large or too small."""
    if config.cap is None:
        return torch.zeros_like(ratio, dtype=torch.bool)
    return (ratio > config.cap) | (ratio < config.floor)


def kept(log_ratio: torch.Tensor, unit: torch.Tensor, config: Correction) -> torch.Tensor:
    """Return the mask of units that are not rejected, [U]; each token has log r and a unit, [A]."""
    size = torch.bincount(unit)  # [U], tokens
    total = torch.bincount(unit, weights=log_ratio)  # [U], log of the product of ratios
    # The geometric mean does not grow with the length of a unit; the product does.
    log = total / size if config.ratio == "geometric" else total
    ratio = log.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
    return (ratio >= config.low) & (ratio <= config.high)


@dataclass(frozen=True, slots=True)
class UpdateCorrection:
    """Corrects in the update, where the old log-probabilities of the loss are the sampler's.

    The loss's own ratio r is then that of the policy to the sampler. So a weight w counts as w / r
    beside it: 1 within the bounds, and C / r or 0 outside. Rejected tokens weigh 0, and count in
    the means of the loss, which are over the tokens of the mini-batch.
    """

    config: Correction
    ratio: str = "token"  # the loss's kind of ratio; see `importance_ratio`

    @torch.no_grad()
    def apply(
        self, logprob: torch.Tensor, batch: TokenBatch
    ) -> tuple[TokenBatch, dict[str, Metric]]:
        """Return the batch with corrected advantages, and metrics; `logprob` is the policy's."""
        mask = batch.action_mask
        ratio = importance_ratio(logprob, batch.old_logprob, batch.turn, self.ratio)
        factor = torch.ones_like(ratio)
        if self.config.cap is not None:
            factor = weights(ratio, self.config) / ratio  # the loss multiplies by the ratio again
        rejected = self._rejected(logprob, batch)
        factor = factor.where(~rejected, 0.0)
        capped = out_of_bounds(ratio, self.config) & mask
        metrics = {
            "mismatch_weight": Metric(float((factor * ratio * mask).sum())),
            "mismatch_capped_share": Metric(float(capped.sum())),
            "mismatch_rejected_share": Metric(float(rejected.sum())),
        }
        return replace(batch, advantage=batch.advantage * factor), metrics

    def _rejected(self, logprob: torch.Tensor, batch: TokenBatch) -> torch.Tensor:
        """Return the action tokens of rejected units, as a mask. Shape [B, T]."""
        mask, unit = batch.action_mask, self.config.unit
        rejected = torch.zeros_like(mask)
        if unit is None or not mask.any():
            return rejected
        row = torch.arange(len(mask), device=mask.device)[:, None].expand_as(mask)  # [B, T]
        key = torch.stack((row, batch.turn) if unit == "turn" else (row,), -1)[mask]  # [A, 1 or 2]
        _, index = torch.unique(key, dim=0, return_inverse=True)  # [A], the token's unit
        log_ratio = (logprob - batch.old_logprob)[mask]  # [A]
        rejected[mask] = ~kept(log_ratio, index, self.config)[index]
        return rejected
