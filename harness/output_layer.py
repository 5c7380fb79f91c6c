"""Log-probabilities and entropies of tokens from the output layer, however large its vocabulary.

A tokens, H the model's width, V tokens of the vocabulary.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.utils.checkpoint import checkpoint

MOST_LOGITS: Final = 1 << 26
"""Logits that are held at once: 256 MB in float32. A vocabulary of 152 thousand takes 441 tokens at
a time; tiny models never have so many."""


def token_scores(
    layer: Any,
    hidden: torch.Tensor,
    chosen: torch.Tensor,
    temperature: float,
    *,
    entropy_gradient: bool = False,
    most_logits: int = MOST_LOGITS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probabilities of tokens, and entropies of the distributions they are from.

    Where tokens times vocabulary exceed `most_logits`, they take turns, and their logits are
    computed once more for the gradient in place of being kept.

    Args:
        layer: The output layer, H -> V.
        hidden: What it sees. Shape [A, H].
        chosen: The tokens. Shape [A], integers.
        temperature: Logits are divided by it; more than 0.
        entropy_gradient: The entropy is to be trained on; else it carries no gradient.
        most_logits: See above.

    Returns:
        Shapes [A], [A], in nats and float32.
    """
    size = max(1, most_logits // int(layer.weight.shape[0]))
    if len(hidden) <= size:
        return _scores(layer, hidden, chosen, temperature, entropy_gradient)
    cut: Any = torch.split  # whose types torch does not tell
    parts = [
        checkpoint(_scores, layer, *part, temperature, entropy_gradient, use_reentrant=False)
        for part in zip(cut(hidden, size), cut(chosen, size), strict=True)
    ]
    logprob, entropy = zip(*parts, strict=True)
    return torch.cat(logprob), torch.cat(entropy)


def _scores(
    layer: Any,
    hidden: torch.Tensor,
    chosen: torch.Tensor,
    temperature: float,
    entropy_gradient: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    logits = layer(hidden).float()
    if temperature != 1:
        logits = logits / temperature
    distribution = torch.log_softmax(logits, dim=-1)  # [A, V]
    picked = distribution.gather(-1, chosen[:, None])[:, 0]
    if entropy_gradient and torch.is_grad_enabled():
        return picked, -(distribution.exp() * distribution).sum(-1)
    with torch.no_grad():
        weight = distribution.exp()
        return picked, -weight.mul_(distribution).sum(-1)
