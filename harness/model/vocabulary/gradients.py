"""Gradients of the embedding and the output layer, added to `weight.grad` in place.

Autograd makes a tensor of the weight's size for each use of a weight in each backward pass, and
adds them: three of them beside the gradient itself, if the layers are tied. Here each use adds to
the gradient what it changes. `torch.autograd.grad` does not see such a gradient.

A: number of tokens. H: the model's width. V: size of the vocabulary.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.nn import functional


def add_in_place(model: Any) -> None:
    """Let the backward pass add to the gradients of embedding and output layer in place.

    Layers that are not torch's own, that are frozen or that have adapters stay as they are. The
    transformers model must not be sharded.
    """
    for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
        kind = _IN_PLACE.get(type(layer))
        if kind is not None and layer.weight.requires_grad:
            layer.__class__ = kind


def gradient_of(weight: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a weight so far, to be added to."""
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    return weight.grad


def make_gradients(model: torch.nn.Module) -> None:
    """Give each trained weight a gradient of zeros.

    Memory of the CPU that is taken in the midst of activations leaves gaps once these are freed.
    """
    for parameter in model.parameters():
        if parameter.requires_grad:
            gradient_of(parameter)


class InPlaceLinear(torch.nn.Linear):
    """A linear layer whose weight's gradient is added in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `x @ weight.T + bias`. Shape [..., V]."""
        out: torch.Tensor = _Product.apply(x, self.weight)  # type: ignore[no-untyped-call]
        return out if self.bias is None else out + self.bias


class InPlaceEmbedding(torch.nn.Embedding):
    """An embedding whose gradient is added in place."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the rows of tokens. Shape [..., H]."""
        given = self.weight, tokens, self.padding_idx
        rows: torch.Tensor = _Rows.apply(*given)  # type: ignore[no-untyped-call]
        return rows


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.owner = weight  # a saved tensor may be a checkpoint's copy, without the gradient
        return functional.linear(x, weight)

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> Any:
        x, weight = ctx.saved_tensors
        if ctx.needs_input_grad[1]:
            gradient_of(ctx.owner).addmm_(slope.flatten(0, -2).T, x.flatten(0, -2))
        # None for the weight: autograd would add a second tensor of its size.
        return slope @ weight if ctx.needs_input_grad[0] else None, None


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: torch.Tensor, tokens: torch.Tensor, padding: int | None
    ) -> torch.Tensor:
        ctx.save_for_backward(weight, tokens)
        ctx.padding = padding
        return functional.embedding(tokens, weight)

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> Any:
        weight, tokens = ctx.saved_tensors
        if ctx.padding is not None:  # its row is not trained
            slope = slope.masked_fill((tokens == ctx.padding)[..., None], 0.0)
        gradient = gradient_of(weight)
        gradient.index_add_(0, tokens.flatten(), slope.flatten(0, -2).to(gradient.dtype))
        return None, None, None


_IN_PLACE: Final[dict[type, type]] = {
    torch.nn.Linear: InPlaceLinear,
    torch.nn.Embedding: InPlaceEmbedding,
}
