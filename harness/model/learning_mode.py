"""The mode of a model in an update: it computes the same numbers as in generation.

A model's own dropout, dropped layers and noise of routers would make the update's first importance
ratios differ from 1 although no weight has moved, so they are off. Adapters keep their dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import torch

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
