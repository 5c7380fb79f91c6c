"""A model's path from its last hidden states to logits: output layer, scales, caps, transforms.

Many architectures cap logits (Gemma 2), scale them (Cohere, Granite) or transform the hidden states
before (BERT). So the forward pass of the model's class computes them, with hidden states in the
place of its base model.

A: number of tokens. H: the model's width. V: size of the vocabulary.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from harness.types.errors import ConfigError

_SIZES: Final = (0.1, 1.0, 30.0, 1000.0)
"""Sizes of the hidden states that are tried: a cap changes only large logits in some models."""


class OwnHead:
    """A model's way from hidden states to logits, called like its output layer."""

    def __init__(self, model: Any) -> None:
        self._model, base = model, base_name(model)
        self.weight: torch.Tensor = model.get_output_embeddings().weight
        outside = (part for name, part in model.named_children() if name != base)
        first = next((one for part in outside for one in part.parameters()), self.weight)
        self._type = first.dtype  # a transform before the output layer may be rounded

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of last hidden states. Shapes [A, H] -> [A, V]."""
        model, known = self._model, vars(self._model)
        name = base_name(model)
        twin = object.__new__(type(model))  # shares all but the base model
        found = _Found(model._modules[name], hidden[None].to(self._type))
        vars(twin).update(known | {"_modules": {**known["_modules"], name: found}})
        tokens = torch.zeros(1, len(hidden), dtype=torch.long, device=hidden.device)
        out = type(model).forward(twin, input_ids=tokens, use_cache=False, return_dict=True)
        logits: torch.Tensor = out.logits[0]
        return logits


class _Found:
    """Stands for a base model whose hidden states are known; has its attributes otherwise."""

    def __init__(self, base: Any, hidden: torch.Tensor) -> None:
        self._base, self._hidden = base, hidden

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

        return _Output(BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=self._hidden))

    def __getattr__(self, name: str) -> Any:
        from transformers import PreTrainedModel

        value = getattr(self._base, name)
        inner = isinstance(value, PreTrainedModel)  # such as a decoder in a wrapper
        return _Found(value, self._hidden) if inner else value


class _Output:
    """The output of a base model, without the fields that need its layers."""

    def __init__(self, known: Any) -> None:
        self._known = known

    def __getitem__(self, place: Any) -> Any:
        return self._known[place]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._known, name, None)


def base_name(model: Any) -> str:
    """Return the name of the attribute of a model that has its layers without the output layer."""
    parts = model._modules
    if parts.get(model.base_model_prefix) is not None:
        return str(model.base_model_prefix)
    from transformers import PreTrainedModel

    names = [name for name, one in parts.items() if isinstance(one, PreTrainedModel)]
    if len(names) != 1:
        raise ConfigError(
            f"a model of type {model.config.model_type} cannot be used here: its "
            f"{type(model).__name__} has no layers apart from its output layer; take a model of "
            "another type"
        )
    return str(names[0])


@torch.no_grad()
def is_plain(model: Any, width: int) -> bool:
    """Return whether logits are the output layer's, bit for bit; `ConfigError` if there is none."""
    layer = model.get_output_embeddings()
    if layer is None:
        raise ConfigError(
            f"a model of type {model.config.model_type} cannot be used here: its "
            f"{type(model).__name__} has no output layer; take a model of another type"
        )
    if layer.weight.shape[-1] != width:
        return False
    random = torch.Generator().manual_seed(0)
    rows = torch.randn(len(_SIZES), width, generator=random) * torch.tensor(_SIZES)[:, None]
    hidden = rows.to(layer.weight.device, layer.weight.dtype)
    base = base_name(model)
    outside = [part for name, part in model.named_children() if name != base]
    training = [one for part in outside for one in part.modules() if one.training]
    for one in training:  # its dropout would differ
        one.training = False
    try:
        with torch.autocast(hidden.device.type, enabled=False):
            own = OwnHead(model)(hidden)
            return bool(torch.equal(own.float(), layer(hidden).float()))
    finally:
        for one in training:
            one.training = True
