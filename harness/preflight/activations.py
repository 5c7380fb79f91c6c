"""Activations that PyTorch keeps for the backward pass, counted on tensors without memory.

transformers' own language model runs forward on fake tensors, which have shapes and no numbers,
with one and with two layers of each kind. So the count follows the architecture: norms of queries
and keys, linear attention, experts.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.moe import ExpertsInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

_NAME: Final = "counted_sdpa"
_TOKENS: Final = 192
"""Whole chunks of 64 tokens of linear attention."""
_HALF: Final = 2


def layer_kinds(text: Any) -> tuple[str, ...]:
    """Return the kind of each layer of a language model's configuration."""
    kinds = getattr(text, "layer_types", None)
    usual = "sliding" if getattr(text, "sliding_window", None) else "full"
    return tuple(kinds or (f"{usual}_attention",) * text.num_hidden_layers)


@lru_cache(16)
def kept_bytes(text: str, weight: int, compute: int) -> tuple[tuple[float, ...], float]:
    """Return the bytes of activations of one token: of each layer, and of the rest.

    Args:
        text: transformers' configuration of a language model, as JSON.
        weight: Bytes of a weight, 2 or 4.
        compute: Bytes of a number in matrix products, 2 or 4.
    """
    from transformers import AutoConfig

    fields = json.loads(text)
    kinds = layer_kinds(AutoConfig.for_model(**fields))
    layer, rest = {}, 0.0
    for kind in dict.fromkeys(kinds):
        one, two = (_count(fields, [kind] * n, weight, compute) for n in (1, 2))
        layer[kind], rest = two - one, max(rest, 2 * one - two)
    return tuple(layer[kind] for kind in kinds), rest


def _count(fields: dict[str, Any], kinds: list[str], weight: int, compute: int) -> float:
    """Return the bytes that a forward pass of layers of these kinds keeps of one token."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(**fields)
    config.num_hidden_layers = len(kinds)
    if getattr(config, "layer_types", None):
        config.layer_types = kinds
    dtype = torch.bfloat16 if weight == _HALF else torch.float32
    held: dict[int, int] = {}
    alive = []  # so that no storage takes another one's place
    with FakeTensorMode():
        model = AutoModel.from_config(  # type: ignore[no-untyped-call]
            config, dtype=dtype, attn_implementation=_NAME, experts_implementation=_NAME
        ).train()
        weights = {_storage(parameter) for parameter in model.parameters()}
        shapes = {parameter.shape[-2:] for parameter in model.parameters()}
        shapes |= {shape[::-1] for shape in shapes}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            copied = compute < weight and tensor.shape in shapes  # autocast's copy of a weight
            if _storage(tensor) not in weights and not copied:
                held[_storage(tensor)] = tensor.untyped_storage().nbytes()
                alive.append(tensor)
            return tensor

        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            torch.autocast("cpu", torch.bfloat16, enabled=compute < weight),
        ):
            model(input_ids=torch.zeros(1, _TOKENS, dtype=torch.long), use_cache=False)
    return sum(held.values()) / _TOKENS


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _one_expert(
    module: Any, hidden: torch.Tensor, chosen: torch.Tensor, share: torch.Tensor
) -> torch.Tensor:
    """Compute as many rows as transformers' grouped experts, all with the first expert.

    Like those, it computes in the type of the weights, also under autocast.
    """

    def order(weights: torch.Tensor) -> torch.Tensor:
        return weights[0].T if module.is_transposed else weights[0]

    linear = torch.nn.functional.linear
    with torch.autocast("cpu", enabled=False):
        rows = hidden[torch.arange(chosen.numel()) // chosen.shape[-1]]  # [tokens x experts, H]
        rows = rows.to(module.down_proj.dtype)
        rows = module._apply_gate(linear(rows, order(module.gate_up_proj)))
        rows = linear(rows, order(module.down_proj)) * share.reshape(-1, 1)
    return rows.view(*chosen.shape, -1).sum(1).to(hidden.dtype)


def _causal_mask(*args: Any, **kwargs: Any) -> Any:
    """Leave the mask away where transformers would; it cannot tell that from fake tensors."""
    return sdpa_mask(*args, **kwargs | {"allow_is_causal_skip": True})


AttentionInterface.register(_NAME, sdpa_attention_forward)
AttentionMaskInterface.register(_NAME, _causal_mask)
ExpertsInterface.register(_NAME, _one_expert)
