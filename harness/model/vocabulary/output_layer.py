"""Log-probabilities and entropies of tokens, computed from the output layer in chunks.

A: number of tokens. H: the model's width. V: size of the vocabulary. With p the distribution and S
its entropy, the gradient of log p_c by the logits is 1_c - p, and that of S is -p (log p + S).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint

from harness.model.learning_mode import InPlaceLinear, gradient_of

MOST_LOGITS: Final = 1 << 26
"""Logits in memory at the same time: 256 MB in float32. With a vocabulary of 152 thousand a chunk
has 441 tokens; tiny models need one chunk."""

_NEVER: Final = -1e30
"""Logit of a token without a probability: finite at any temperature above 1e-8."""


def token_scores(
    layer: Any,  # the output layer, H -> V
    hidden: torch.Tensor,  # input of the layer. Shape [A, H].
    chosen: torch.Tensor,  # the tokens. Shape [A], integers.
    temperature: float,  # divides the logits; more than 0
    *,
    entropy_gradient: bool = False,  # compute the gradient of the entropy, too
    # Ids of tokens without a probability; None for none. Shape [K].
    hidden_tokens: torch.Tensor | None = None,
    most_logits: int = MOST_LOGITS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probabilities of tokens, [A], and entropies of distributions, [A], in nats.

    More than `most_logits` logits are computed in chunks, and again in the backward pass. Logits
    and the layer's gradient have the type of its weights, also under autocast; results are in
    float32.
    """
    size = max(1, most_logits // int(layer.weight.shape[0]))
    if len(hidden) <= size:
        return _scores(layer, hidden, chosen, temperature, entropy_gradient, hidden_tokens)
    if type(layer) in (torch.nn.Linear, InPlaceLinear):
        chunks = _Chunks(temperature, entropy_gradient, size, isinstance(layer, InPlaceLinear))
        scores: tuple[torch.Tensor, torch.Tensor] = _ChunkedScores.apply(  # type: ignore[no-untyped-call]
            hidden.to(layer.weight.dtype), layer.weight, layer.bias, hidden_tokens, chosen, chunks
        )
        return scores
    # A layer with adapters is no plain product, so autograd runs it, chunk by chunk.
    split: Any = torch.split  # torch has no types for it
    parts = [
        checkpoint(
            _scores,
            layer,
            part,
            tokens,
            temperature,
            entropy_gradient,
            hidden_tokens,
            use_reentrant=False,
        )
        for part, tokens in zip(split(hidden, size), split(chosen, size), strict=True)
    ]
    logprob, entropy = zip(*parts, strict=True)
    return torch.cat(logprob), torch.cat(entropy)


def hide(logits: torch.Tensor, tokens: torch.Tensor | None) -> torch.Tensor:
    """Return logits that give tokens no probability; changes `logits`.

    Their logarithms stay finite, so that the entropy has no 0 times infinity. Autograd need not
    know of it: the gradient by a logit is the probability's multiple, so it is zero already.
    `logits` is [..., V] in float32; `tokens` has K ids or is None.
    """
    if tokens is not None:
        with torch.no_grad():
            logits.index_fill_(-1, tokens, _NEVER)
    return logits


def round_weights(model: Any) -> None:
    """Replace all weights of a model by new ones in bfloat16, of its output layer in float32.

    Tied weights become two. Weights that the model shares with another one are not changed there.
    """
    head = model.get_output_embeddings()
    for module in model.modules():
        kind = torch.float32 if module is head else torch.bfloat16
        for name, weight in list(module.named_parameters(recurse=False)):
            rounded = torch.nn.Parameter(weight.detach().to(kind), requires_grad=False)
            setattr(module, name, rounded)
    head.register_forward_pre_hook(lambda layer, given: (given[0].to(layer.weight.dtype),))


def _scores(
    layer: Any,
    hidden: torch.Tensor,
    chosen: torch.Tensor,
    temperature: float,
    entropy_gradient: bool,
    hidden_tokens: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.autocast(hidden.device.type, enabled=False):  # rounded logits are far off
        logits = layer(hidden.to(layer.weight.dtype)).float()
    logits = hide(logits, hidden_tokens)
    if temperature != 1:
        logits = logits / temperature
    distribution = torch.log_softmax(logits, dim=-1)  # [A, V]
    picked = distribution.gather(-1, chosen[:, None])[:, 0].clone()  # FSDP wants no view
    if entropy_gradient and torch.is_grad_enabled():
        return picked, -(distribution.exp() * distribution).sum(-1)
    with torch.no_grad():
        weight = distribution.exp()
        return picked, -weight.mul_(distribution).sum(-1)


@dataclass(frozen=True, slots=True)
class _Chunks:
    temperature: float  # divides the logits; more than 0
    with_entropy: bool  # the entropy has a gradient
    size: int  # tokens of a chunk, a
    in_place: bool  # the weight's gradient is added to that of earlier backward passes


class _ChunkedScores(torch.autograd.Function):
    """Scores whose backward pass computes logits again and adds all chunks into one gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,  # input of the layer, in the type of its weights. Shape [A, H].
        weight: torch.Tensor,  # shape [V, H]
        bias: torch.Tensor | None,  # shape [V], or None
        # Ids of tokens without a probability; None for none. Shape [K].
        hidden_tokens: torch.Tensor | None,
        chosen: torch.Tensor,  # the tokens. Shape [A], integers.
        chunks: _Chunks,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(hidden, weight, bias, hidden_tokens, chosen)
        ctx.chunks = chunks
        scores = [
            _chunk_scores(
                hidden[part], weight, bias, hidden_tokens, chosen[part], chunks.temperature
            )
            for part in _parts(len(hidden), chunks.size)
        ]
        picked, entropy = (torch.cat(values) for values in zip(*scores, strict=True))
        if not chunks.with_entropy:
            ctx.mark_non_differentiable(entropy)
        return picked, entropy

    @staticmethod
    def backward(ctx: Any, d_picked: torch.Tensor, d_entropy: torch.Tensor) -> Any:
        hidden, weight, bias, hidden_tokens, chosen = ctx.saved_tensors
        chunks: _Chunks = ctx.chunks
        by_hidden, by_weight, by_bias = (
            torch.zeros_like(given)
            if needed and not (chunks.in_place and given is weight)
            else None
            for given, needed in zip((hidden, weight, bias), ctx.needs_input_grad, strict=False)
        )
        # Adding in place: autograd gets None, or it would add a second tensor of [V, H].
        total = gradient_of(weight) if chunks.in_place and ctx.needs_input_grad[1] else by_weight
        for part in _parts(len(hidden), chunks.size):
            log_p = _log_distribution(
                hidden[part], weight, bias, hidden_tokens, chunks.temperature
            )  # [a, V]
            slope = _by_logits(
                log_p,
                chosen[part],
                d_picked[part],
                d_entropy[part] if chunks.with_entropy else None,
            )
            slope = slope.div_(chunks.temperature).to(weight.dtype)  # [a, V]
            if by_hidden is not None:
                torch.mm(slope, weight, out=by_hidden[part])
            if total is not None:
                total.addmm_(slope.T, hidden[part])
            if by_bias is not None:
                by_bias.add_(slope.sum(0))
            del slope, log_p  # before the next chunk
        return by_hidden, by_weight, by_bias, None, None, None  # one for each input


def _parts(tokens: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, tokens, size))


def _chunk_scores(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    hidden_tokens: torch.Tensor | None,
    chosen: torch.Tensor,
    temperature: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    log_p = _log_distribution(hidden, weight, bias, hidden_tokens, temperature)
    picked = log_p.gather(-1, chosen[:, None])[:, 0]
    return picked, -log_p.exp().mul_(log_p).sum(-1)


def _by_logits(
    log_p: torch.Tensor,
    chosen: torch.Tensor,
    d_picked: torch.Tensor,
    d_entropy: torch.Tensor | None,
) -> torch.Tensor:
    """Return the gradient by the logits of a chunk before the temperature; changes `log_p`."""
    slope = log_p.exp()  # [a, V], p
    if d_entropy is None:
        slope.mul_(-d_picked[:, None])
    else:
        # -p ((log p + S) d_entropy + d_picked), in the memory of p and log p alone
        minus_entropy = slope.mul(log_p).sum(-1, keepdim=True)  # [a, 1], -S
        log_p.sub_(minus_entropy).mul_(d_entropy[:, None]).add_(d_picked[:, None])
        slope.mul_(log_p.neg_())
    return slope.scatter_add_(-1, chosen[:, None], d_picked[:, None])  # 1_c d_picked


def _log_distribution(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    hidden_tokens: torch.Tensor | None,
    temperature: float,
) -> torch.Tensor:
    """Return the logarithms of the distributions in float32. Shape [a, V]."""
    with torch.autocast(hidden.device.type, enabled=False):  # rounded logits are far off
        logits = linear(hidden, weight, bias).float()
    logits = hide(logits, hidden_tokens)
    if temperature != 1:
        logits /= temperature
    return torch.log_softmax(logits, dim=-1)
