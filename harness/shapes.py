"""The shapes of models: from their `config.json` where they are on this machine, else from a table.

What a model needs is known from its shape, before its weights are here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from harness.config import PolicyConfig
from harness.errors import ConfigError
from harness.lora import LoraConfig
from harness.tiny import TinyConfig

_BIASED: Final = ("qwen2", "qwen2_5_vl", "qwen2_5_vl_text")
"""Types whose queries, keys and values have a bias."""


@dataclass(frozen=True, slots=True)
class VisionShape:
    """The part of a Qwen2.5-VL that sees: a transformer over patches, and what merges them.

    Attributes:
        hidden: Width.
        layers: Transformer layers.
        feed_forward: Width of the feed-forward layers.
        patch: Pixels of a patch's side.
        merged: Patches of a side that become one token.
        frames: Of a patch.
    """

    hidden: int = 1280
    layers: int = 32
    feed_forward: int = 3420
    patch: int = 14
    merged: int = 2
    frames: int = 2

    def parameters(self, width: int) -> int:
        """Return its number of parameters before a language model of this width."""
        h, f, both = self.hidden, self.feed_forward, self.hidden * self.merged**2
        attention = 3 * (h * h + h) + h * h + h
        layer = 2 * h + attention + 3 * h * f + 2 * f + h
        merger = h + both * both + both + both * width + width
        return 3 * self.frames * self.patch**2 * h + self.layers * layer + merger


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder of the kind of Qwen2 and Llama.

    Attributes:
        hidden: Width.
        layers: Transformer layers.
        heads: Of queries.
        kv_heads: Of keys and values.
        feed_forward: Width of the feed-forward layers, which are gated.
        vocabulary: Rows of the embedding.
        tied: The output layer is the embedding.
        biased: Queries, keys and values have a bias.
        max_length: Longest sequence in tokens.
        head_width: Of one head; 0 for an equal share of the width.
        vision: What sees, or None.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int
    tied: bool
    biased: bool = True
    max_length: int = 32768
    head_width: int = 0
    vision: VisionShape | None = None

    @property
    def queries(self) -> int:
        """Width of all queries."""
        return self.heads * (self.head_width or self.hidden // self.heads)

    @property
    def keys(self) -> int:
        """Width of all keys, and of all values."""
        return self.kv_heads * (self.head_width or self.hidden // self.heads)

    def linear(self) -> dict[str, tuple[int, int]]:
        """Return what goes into each linear layer of one transformer layer, and what comes out."""
        h, f, q, k = self.hidden, self.feed_forward, self.queries, self.keys
        return {
            "q_proj": (h, q),
            "k_proj": (h, k),
            "v_proj": (h, k),
            "o_proj": (q, h),
            "gate_proj": (h, f),
            "up_proj": (h, f),
            "down_proj": (f, h),
        }

    def parameters(self) -> int:
        """Return its number of parameters."""
        layer = sum(a * b for a, b in self.linear().values()) + 2 * self.hidden
        layer += (self.queries + 2 * self.keys) * self.biased
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        sight = self.vision.parameters(self.hidden) if self.vision else 0
        return embeddings + self.layers * layer + self.hidden + sight

    def adapter_parameters(self, lora: LoraConfig) -> int:
        """Return the number of parameters of low-rank adapters, those on the vision left out."""
        chosen = self.linear()
        if tuple(lora.targets) != ("all-linear",):
            chosen = {name: size for name, size in chosen.items() if name in lora.targets}
        return self.layers * sum(lora.rank * (a + b) for a, b in chosen.values())

    def cache_bytes(self, number_bytes: int) -> int:
        """Return the bytes of keys and values of one token."""
        return 2 * self.layers * self.keys * number_bytes


_QWEN_3B: Final = Shape(2048, 36, 16, 2, 11008, 151936, tied=True)
_QWEN_7B: Final = Shape(3584, 28, 28, 4, 18944, 152064, tied=False)

KNOWN: Final = {
    "Qwen/Qwen2.5-0.5B-Instruct": Shape(896, 24, 14, 2, 4864, 151936, tied=True),
    "Qwen/Qwen2.5-1.5B-Instruct": Shape(1536, 28, 12, 2, 8960, 151936, tied=True),
    "Qwen/Qwen2.5-3B-Instruct": _QWEN_3B,
    "Qwen/Qwen2.5-7B-Instruct": _QWEN_7B,
    "Qwen/Qwen2.5-32B-Instruct": Shape(5120, 64, 40, 8, 27648, 152064, tied=False),
    "Qwen/Qwen2.5-VL-3B-Instruct": replace(_QWEN_3B, max_length=128_000, vision=VisionShape()),
    "Qwen/Qwen2.5-VL-7B-Instruct": replace(_QWEN_7B, max_length=128_000, vision=VisionShape()),
    "meta-llama/Llama-3.1-8B-Instruct": Shape(
        4096, 32, 32, 8, 14336, 128256, tied=False, biased=False, max_length=131_072
    ),
}
"""The models of the recipes, as their `config.json` on the hub describes them."""


def shape_of(policy: PolicyConfig) -> Shape:
    """Return the shape of a run's model; of a tiny one at its largest vocabulary.

    Raises:
        ConfigError: The model is not on this machine, and its shape is not known here.
    """
    if policy.model in ("tiny", "tiny-vl"):
        return _tiny(policy.tiny, sees=policy.model == "tiny-vl")
    description = description_of(policy.model)
    if description is not None:
        return read(json.loads(description.read_text(encoding="utf-8")), policy.model)
    if policy.model in KNOWN:
        return KNOWN[policy.model]
    raise ConfigError(
        f"policy.model {policy.model!r} is not on this machine, and its shape is not known: "
        f"download it with `hf download {policy.model}`, or use one of {', '.join(KNOWN)}"
    )


def description_of(model: str) -> Path | None:
    """Return the `config.json` of a model in a folder or in the hub's cache, None without one."""
    inside = Path(model) / "config.json"
    if inside.is_file():
        return inside
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        return None
    return Path(found) if isinstance(found, str) else None


def read(description: Mapping[str, Any], model: str) -> Shape:
    """Return the shape that a `config.json` tells.

    Raises:
        ConfigError: It is no decoder of this kind.
    """
    text = {**description, **description.get("text_config", {})}
    try:
        heads = int(text["num_attention_heads"])
        return Shape(
            hidden=int(text["hidden_size"]),
            layers=int(text["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(text.get("num_key_value_heads") or heads),
            feed_forward=int(text["intermediate_size"]),
            vocabulary=int(text["vocab_size"]),
            tied=bool(description.get("tie_word_embeddings", text.get("tie_word_embeddings"))),
            biased=bool(text.get("attention_bias", text.get("model_type") in _BIASED)),
            max_length=int(text["max_position_embeddings"]),
            head_width=int(text.get("head_dim") or 0),
            vision=_vision(description.get("vision_config")),
        )
    except (KeyError, TypeError, ValueError) as e:
        raise ConfigError(f"the shape of {model!r} cannot be read from its config.json: {e}") from e


def _vision(described: Mapping[str, Any] | None) -> VisionShape | None:
    if not described:
        return None
    return VisionShape(
        hidden=int(described["hidden_size"]),
        layers=int(described["depth"]),
        feed_forward=int(described["intermediate_size"]),
        patch=int(described["patch_size"]),
        merged=int(described["spatial_merge_size"]),
        frames=int(described["temporal_patch_size"]),
    )


def _tiny(size: TinyConfig, *, sees: bool) -> Shape:
    from harness import tiny_vl

    own = (size.hidden, size.layers, size.heads, size.heads, size.feed_forward, size.vocabulary)
    shape = Shape(*own, tied=True, max_length=size.max_length)
    return replace(shape, vision=_vision(tiny_vl.vision_settings(size))) if sees else shape
