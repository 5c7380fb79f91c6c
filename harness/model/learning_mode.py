"""The mode of a model in an update: it computes the same numbers as in generation.

Its own dropout, dropped layers and noise of routers would make the update's first importance ratios
differ from 1, so they are off. Adapters keep their dropout.

Gradients of embedding and output layer are added to `weight.grad` in place, where autograd would
make a tensor of the weight's size for each use. `torch.autograd.grad` does not see such a gradient.

A: number of tokens. H: the model's width. V: size of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import torch
from torch.nn import functional

_PROBABILITIES: Final = ("dropout", "drop_rate", "pdrop", "layerdrop", "jitter_noise")
"""Parts of the names under which transformers' configurations have probabilities of dropping."""
_OF_CLASSIFIERS: Final = ("classifier", "summary")
"""Beginnings of the names of those that belong to heads other than a language model's."""


def is_adapted_layer(module: torch.nn.Module) -> bool:
    """Return whether a module is a layer with an adapter."""
    return hasattr(module, "base_layer") and hasattr(module, "lora_A")


def set_learning(model: Any) -> None:
    """Put a model into the mode of an update.

    transformers computes a layer's activations again only in training, so such a layer itself is
    in training, and `checkpoint_activations` puts it into evaluation while it computes.
    """
    from transformers.modeling_layers import GradientCheckpointingLayer

    model.eval()
    for module in model.modules():
        if is_adapted_layer(module):
            module.training = True
            module.lora_dropout.train()
        elif isinstance(module, GradientCheckpointingLayer) and module.gradient_checkpointing:
            module.training = True


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Put a model into evaluation: adapters' dropout is off, too; then into its mode before."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def checkpoint_activations(model: Any) -> None:
    """Have a transformers model compute activations again in the backward pass."""
    enable = getattr(model, "activation_checkpointing_enable", None)  # of newer versions
    (enable or model.gradient_checkpointing_enable)({"use_reentrant": False})
    for module in model.modules():
        checkpoint = getattr(module, "_gradient_checkpointing_func", None)
        if checkpoint is not None:
            module._gradient_checkpointing_func = partial(_checkpointed, module, checkpoint)


def _checkpointed(
    module: torch.nn.Module, checkpoint: Callable[..., Any], forward: Callable[..., Any], *args: Any
) -> Any:
    """Call a layer's forward pass by `checkpoint`, with the layer itself in evaluation."""

    def evaluated(*given: Any) -> Any:
        before, module.training = module.training, False
        try:
            return forward(*given)
        finally:
            module.training = before

    return checkpoint(evaluated, *args)


def has_own_dropout(config: Mapping[str, Any]) -> bool:
    """Return whether a model would drop something in training, by its configuration."""
    return any(
        isinstance(value, int | float) and value > 0
        for name, value in config.items()
        if any(part in name for part in _PROBABILITIES) and not name.startswith(_OF_CLASSIFIERS)
    )


def drops_in_learning(model: Any) -> bool:
    """Return whether adapters have dropout, the only one of an update."""
    layers = (module for module in model.modules() if is_adapted_layer(module))
    dropped = (one for layer in layers for one in layer.lora_dropout.modules())
    return any(isinstance(one, torch.nn.Dropout) and one.p > 0 for one in dropped)


def add_in_place(model: Any) -> None:
    """Let the backward pass add to the gradients of embedding and output layer in place.

    Layers that are not torch's own, that are frozen or that have adapters stay as they are. The
    transformers model must not be sharded.
    """
    for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
        kind = _IN_PLACE.get(type(layer))
        if kind is not None and layer.weight.requires_grad:
            layer.__class__ = kind


def adds_in_place(model: Any) -> bool:
    """Return whether a layer of a model adds to its gradient in place."""
    return any(isinstance(one, InPlaceLinear | InPlaceEmbedding) for one in model.modules())


def gradient_of(weight: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a weight so far, to be added to."""
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    return weight.grad


def make_gradients(model: torch.nn.Module) -> None:
    """Give each trained weight a gradient of zeros; made among activations, it would leave gaps."""
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
