"""Log-probabilities and entropies of tokens, computed from the output layer in chunks.

A: number of tokens. H: the model's width. V: size of the vocabulary.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.utils.checkpoint import checkpoint

from harness.model.chunked_scores import ChunkedScores

MOST_LOGITS: Final = 1 << 26
"""Logits in memory at the same time: 256 MB in float32. With a vocabulary of 152 thousand a chunk
has 441 tokens; tiny models need one chunk."""


def token_scores(
    layer: Any,
    hidden: torch.Tensor,
    chosen: torch.Tensor,
    temperature: float,
    *,
    entropy_gradient: bool = False,
    most_logits: int = MOST_LOGITS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probabilities of tokens and entropies of their distributions.

    If there are more than `most_logits` logits, tokens are processed in chunks, and the backward
    pass recomputes their logits. Logits and the layer's gradient are computed in the type of its
    weights, also in a context of autocast.

    Args:
        layer: The output layer, H -> V.
        hidden: Input of the layer. Shape [A, H].
        chosen: The tokens. Shape [A], integers.
        temperature: Divides the logits; more than 0.
        entropy_gradient: Compute the gradient of the entropy, too.
        most_logits: Largest number of logits in memory.

    Returns:
        Shapes [A], [A], in nats and float32.
    """
    size = max(1, most_logits // int(layer.weight.shape[0]))
    if len(hidden) <= size:
        return _scores(layer, hidden, chosen, temperature, entropy_gradient)
    if type(layer) is torch.nn.Linear:
        own, how = (layer.weight, layer.bias), (temperature, entropy_gradient, size)
        found: tuple[torch.Tensor, torch.Tensor] = ChunkedScores.apply(  # type: ignore[no-untyped-call]
            hidden.to(layer.weight.dtype), *own, chosen, *how
        )
        return found
    cut: Any = torch.split  # torch has no types for it
    parts = [  # of a layer with adapters
        checkpoint(_scores, layer, *part, temperature, entropy_gradient, use_reentrant=False)
        for part in zip(cut(hidden, size), cut(chosen, size), strict=True)
    ]
    logprob, entropy = zip(*parts, strict=True)
    return torch.cat(logprob), torch.cat(entropy)


def round_weights(model: Any) -> None:
    """Replace all weights of a model by new ones in bfloat16, of its output layer in float32.

    Tied weights become two. Weights that the model shares with another one are not changed there.

    Args:
        model: A transformers model that is not trained.
    """
    head = model.get_output_embeddings()
    for module in model.modules():
        kind = torch.float32 if module is head else torch.bfloat16
        for name, weight in list(module.named_parameters(recurse=False)):
            own = torch.nn.Parameter(weight.detach().to(kind), requires_grad=False)
            setattr(module, name, own)
    head.register_forward_pre_hook(lambda layer, given: (given[0].to(layer.weight.dtype),))


def _scores(
    layer: Any,
    hidden: torch.Tensor,
    chosen: torch.Tensor,
    temperature: float,
    entropy_gradient: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.autocast(hidden.device.type, enabled=False):  # rounded logits are far off
        logits = layer(hidden.to(layer.weight.dtype)).float()
    if temperature != 1:
        logits = logits / temperature
    distribution = torch.log_softmax(logits, dim=-1)  # [A, V]
    picked = distribution.gather(-1, chosen[:, None])[:, 0].clone()  # FSDP wants no view
    if entropy_gradient and torch.is_grad_enabled():
        return picked, -(distribution.exp() * distribution).sum(-1)
    with torch.no_grad():
        weight = distribution.exp()
        return picked, -weight.mul_(distribution).sum(-1)
