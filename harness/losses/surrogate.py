"""Terms of policy losses: importance ratios, clipped surrogates and estimators of KL(p, q).

B sequences, T tokens, L action tokens of a sequence. Reference of the KL estimators: Schulman 2020,
"Approximating KL Divergence", http://joschu.net/blog/kl-approx.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

RATIOS: Final = ("token", "turn", "sequence")
"""The unit that one ratio is computed for."""

LARGEST_LOG: Final = 20.0
"""Log-ratios are clamped here: e^20 = 5e8 is far outside every clip range, and float32 overflows at
e^88. A clamped token has no gradient."""


def importance_ratio(
    logprob: torch.Tensor, old_logprob: torch.Tensor, turn: torch.Tensor, how: str
) -> torch.Tensor:
    """Return the ratio of each action token, and 1 elsewhere. Shape [B, T].

    With d_t = log p(t) - log p_old(t):
    `token`: exp(d_t) (PPO, GRPO).
    `turn`: exp(sum of d over the tokens of the turn), the ratio of a whole action (OPRL, Eq. 6).
    `sequence`: s = exp(mean of d over the L tokens of the sequence), as sg(s) * exp(d_t - sg(d_t)):
    its value is s, its gradient is that of each token, so that tokens may differ in advantage
    (GSPO, arXiv:2507.18071, the token-level variant). With one advantage for all tokens the
    gradient is that of s.

    In the context "window" a sequence is a turn, in "transcript" a rollout. `logprob` is of the
    policy being trained and `old_logprob` of the policy of the rollouts, [B, T]. `turn` is each
    action token's turn, -1 at other tokens, [B, T]. `how` is one of `RATIOS`.
    """
    is_action = turn >= 0  # [B, T]
    log_ratio = torch.where(is_action, logprob - old_logprob, 0.0)
    if how == "turn":
        index = turn.clamp(min=0)  # other tokens add 0 to turn 0
        total = torch.zeros_like(log_ratio).scatter_add(-1, index, log_ratio)
        log_ratio = torch.where(is_action, total.gather(-1, index), 0.0)
    elif how == "sequence":
        length = is_action.sum(-1, keepdim=True).clamp(min=1)  # [B, 1], L
        mean = log_ratio.sum(-1, keepdim=True) / length
        # The value is the mean's, the gradient each token's.
        log_ratio = torch.where(is_action, mean.detach() + log_ratio - log_ratio.detach(), 0.0)
    return log_ratio.clamp(-LARGEST_LOG, LARGEST_LOG).exp()


def clipped_surrogate(
    ratio: torch.Tensor,
    advantage: torch.Tensor,
    low: float,
    high: float,
    dual: float | None = None,
) -> torch.Tensor:
    """Return min(r A, clip(r, 1 - low, 1 + high) A), to be maximised. Shapes [B, T] -> [B, T].

    With `dual` = c it is at least c A where A < 0, so a bad token with a large ratio has a bounded
    loss. Reference: PPO, arXiv:1707.06347, Eq. 7; `high` above `low` is DAPO's clip-higher,
    arXiv:2503.14476; dual clip is Ye et al. 2020, arXiv:1912.09729.
    """
    surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)
    if dual is None:
        return surrogate
    # For A > 0 the clip bounds the term already.
    return torch.where(advantage < 0, torch.maximum(surrogate, dual * advantage), surrogate)


def clipped_share(
    ratio: torch.Tensor,
    advantage: torch.Tensor,
    low: float,
    high: float,
    dual: float | None = None,
) -> torch.Tensor:
    """Return where the clip stops the gradient, as a mask. Shapes [B, T] -> [B, T]."""
    good, bad = advantage > 0, advantage < 0
    stopped = ((ratio > 1 + high) & good) | ((ratio < 1 - low) & bad)
    return stopped if dual is None else stopped | ((ratio > dual) & bad)


def k1(logprob: torch.Tensor, reference_logprob: torch.Tensor) -> torch.Tensor:
    """Return log p - log q: unbiased, may be negative. Shapes [B, T] -> [B, T].

    Use it in rewards: in a loss it has no effect, as its gradient, that of log p, has mean 0.
    """
    return logprob - reference_logprob


def k2(logprob: torch.Tensor, reference_logprob: torch.Tensor) -> torch.Tensor:
    """Return (log p - log q)^2 / 2: biased, never negative; its gradient is KL's in the mean."""
    return (logprob - reference_logprob).square() / 2


def k3(logprob: torch.Tensor, reference_logprob: torch.Tensor) -> torch.Tensor:
    """Return exp(d) - d - 1, d = log q - log p, clamped: unbiased, never negative. Shape [B, T]."""
    difference = (reference_logprob - logprob).clamp(max=LARGEST_LOG)
    return difference.exp() - difference - 1


ESTIMATORS: Final[dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
}
"""By name: `(log p, log q) -> KL`."""
