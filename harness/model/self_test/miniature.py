"""Small random models of a configuration, to compare paths before weights are here.

A miniature has transformers' class and settings of the large model: fewer layers, narrower ones and
a smaller vocabulary. Its weights are large, so that a wrong path gives other log-probabilities.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import torch

_VOCABULARY: Final = 512
_WIDTH: Final = 64
"""Width of the inner layers."""
_WINDOW: Final = 8
"""Tokens of a sliding window: fewer than the sequences that are compared have."""
_MOST_HEADS: Final = 16
_MOST_WEIGHTS: Final = 40_000_000
_SPREAD: Final = 2.0
"""Standard deviation of the weights, times the root of the model's width."""


def model_of(config: Any) -> Any | None:
    """Return a small random model on the CPU, or None; the global random numbers are kept."""
    from transformers import AutoModelForCausalLM

    for small in _smaller(config.get_text_config()):
        with suppress(Exception), torch.random.fork_rng([]):  # an architecture may refuse sizes
            kind: Any = AutoModelForCausalLM
            with torch.device("meta"):
                weights = kind.from_config(copy.deepcopy(small)).parameters()
            if sum(weight.numel() for weight in weights) > _MOST_WEIGHTS:
                continue
            torch.manual_seed(0)
            model = kind.from_config(small, dtype=torch.float32).eval()
            with torch.no_grad():
                model(input_ids=torch.ones(1, 2, dtype=torch.long), use_cache=False)
            return model
    return None


def _smaller(config: Any) -> Iterator[Any]:
    """Yield smaller configurations, the smallest one first."""
    for narrow, inner, few in itertools.product((True, False), repeat=3):
        fields = config.to_dict()
        _cut(fields, config)
        if inner:
            _cut_inside(fields)
        if few:
            _cut_experts(fields)
        with suppress(Exception):
            small = type(config).from_dict(fields)
            if narrow:
                _narrow(small, config)
            if hasattr(small, "initializer_range"):
                small.initializer_range = _SPREAD / math.sqrt(small.hidden_size)
            yield small


def _cut(fields: dict[str, Any], config: Any) -> None:
    """Cut layers, vocabulary and windows; the layers that stay have all kinds of them."""
    layers, kinds = int(config.num_hidden_layers), list(getattr(config, "layer_types", None) or ())
    kept = min(layers, max(2, *(kinds.index(kind) + 1 for kind in kinds))) if kinds else 2
    names = getattr(config, "attribute_map", {})
    for name, value in list(fields.items()):
        if isinstance(value, list) and len(value) == layers:
            fields[name] = value[:kept]
    fields[names.get("num_hidden_layers", "num_hidden_layers")] = kept
    fields[names.get("vocab_size", "vocab_size")] = _VOCABULARY
    fields |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    if fields.get("sliding_window"):
        fields["sliding_window"] = _WINDOW


def _cut_inside(fields: dict[str, Any]) -> None:
    """Take narrower inner layers, and fewer heads of linear attention."""
    for name, value in fields.items():
        if isinstance(value, int) and ("intermediate_size" in name or name == "n_inner"):
            fields[name] = min(value, _WIDTH)
    keys = fields.get("linear_num_key_heads")
    if keys:
        fields["linear_num_value_heads"] = fields["linear_num_value_heads"] // keys * 2
        fields["linear_num_key_heads"] = 2


def _cut_experts(fields: dict[str, Any]) -> None:
    chosen = fields.get("num_experts_per_tok") or 1
    for name in ("num_experts", "num_local_experts", "n_routed_experts"):
        if isinstance(fields.get(name), int):
            fields[name] = min(fields[name], 2 * chosen)


def _narrow(small: Any, config: Any) -> None:
    """Take fewer heads; a head's width, and the queries for each key, stay as they are."""
    heads = int(config.num_attention_heads)
    keys = int(getattr(config, "num_key_value_heads", None) or heads)
    few = 2 if keys % 2 == 0 and 2 * heads // keys < _MOST_HEADS else 1
    fewer = heads // keys * few
    if getattr(small, "num_key_value_heads", None):
        small.num_key_value_heads = few
    small.num_attention_heads = fewer
    small.hidden_size = int(config.hidden_size) // heads * fewer
