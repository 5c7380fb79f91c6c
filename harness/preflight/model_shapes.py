"""Sizes of a model, which transformers builds on the `meta` device, without memory for weights."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from agentgyms.core.errors import path_end
from harness.config import Config, LoraConfig, PolicyConfig
from harness.model import adapters, tiny, tiny_vl
from harness.model.loading import longest_sequence
from harness.model.vision import MODEL_TYPES
from harness.model.weights import converted
from harness.preflight.activations import layer_kinds
from harness.types.errors import ConfigError

KNOWN: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "known_models.toml").read_text(encoding="utf-8")
)
"""Fields of the `config.json` of models that may not be here, by their names on the hub."""

_MOST: Final = 150
"""Characters of transformers' error that a message repeats."""

_LINEAR: Final = "linear_attention"


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a causal language model."""

    parameters: int  # all, those of a vision model included
    hidden: int  # width of the hidden states
    layers: int  # transformer layers
    keys: int  # width of a layer's keys, and of its values
    vocabulary: int  # rows of the embedding
    max_length: int  # tokens
    linear: tuple[tuple[str, int, int], ...] = ()  # name, inputs, outputs of layers for adapters
    windows: tuple[int | None, ...] = ()  # tokens each layer with keys keeps; None: all
    state: int = 0  # bytes of linear attention for a sequence of any length, in float32
    text: str = ""  # transformers' configuration of the language model, JSON

    def adapter_parameters(self, lora: LoraConfig) -> int:
        """Return the number of parameters of low-rank adapters."""
        every = tuple(lora.targets) == ("all-linear",)
        return sum(
            lora.rank * (inputs + outputs)
            for name, inputs, outputs in self.linear
            if every or name.rpartition(".")[2] in lora.targets
        )

    def cache_bytes(self, tokens: int, number_bytes: int, *, whole: bool = False) -> int:
        """Return the bytes of a sequence's cache; with `whole` no attention window limits it."""
        limits = (tokens if whole or window is None else window for window in self.windows)
        kept = sum(min(tokens, limit) for limit in limits)
        return 2 * kept * self.keys * number_bytes + self.state


def shape_of(policy: PolicyConfig) -> Shape:
    """Return the shape of a run's model, adapters' base included.

    A tiny one has its largest vocabulary. Raises `ConfigError` if the model is neither on this
    machine nor in `KNOWN`, or transformers does not know its architecture.
    """
    if policy.model == "tiny":
        return measure(tiny.architecture(policy.tiny, policy.tiny.vocabulary))
    if policy.model == "tiny-vl":
        return measure(tiny_vl.architecture(policy.tiny, policy.tiny.vocabulary))
    from transformers import AutoConfig

    name = converted.folder_of(adapters.base_of(policy.model) or policy.model)
    file = config_file_of(name)
    if file is None and name not in KNOWN:
        raise ConfigError(
            f"policy.model {name!r:.90} is not on this machine and its shape is unknown: "
            f"run `hf download {name:.90} config.json`, which is a file of 1 kB"
        )
    try:
        if file is None:
            return measure(AutoConfig.for_model(**KNOWN[name]))
        return measure(AutoConfig.from_pretrained(file.parent, trust_remote_code=False))
    except Exception as e:  # of a damaged config.json, transformers raises errors of any kind
        reason = " ".join(str(e).split())[:_MOST]
        raise ConfigError(
            f"the shape of {path_end(name, 80)!r} cannot be read from its config.json: {reason}"
        ) from e


def max_sequence_length(config: Config, shape: Shape) -> int:
    """Return the maximum number of tokens of a sequence."""
    return min(config.agent.max_context or shape.max_length, shape.max_length)


def config_file_of(model: str) -> Path | None:
    """Return a model's `config.json`, in a folder or in the hub's cache; None if missing.

    A folder with adapters stands for their base model. A package's model or a GGUF file is
    converted first; raises `ConfigError` if it cannot be.
    """
    model = converted.folder_of(adapters.base_of(model) or model)
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


def measure(config: Any) -> Shape:
    """Return a transformers configuration's shape; `ValueError` if its model makes no text."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    has_images = config.model_type in MODEL_TYPES
    with torch.device("meta"):
        kind = AutoModelForImageTextToText if has_images else AutoModelForCausalLM
        model = kind.from_config(config)  # type: ignore[no-untyped-call]
    text = config.get_text_config()
    heads = int(text.num_attention_heads)
    head = int(getattr(text, "head_dim", None) or text.hidden_size // heads)
    kinds = layer_kinds(text)
    return Shape(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        hidden=int(text.hidden_size),
        layers=int(text.num_hidden_layers),
        keys=int(getattr(text, "num_key_value_heads", None) or heads) * head,
        vocabulary=int(text.vocab_size),
        max_length=longest_sequence(text),
        linear=_linear_layers(model),
        windows=tuple(
            int(text.sliding_window) if "sliding" in kind else None
            for kind in kinds
            if kind != _LINEAR
        ),
        state=sum(_state_bytes(text) for kind in kinds if kind == _LINEAR),
        text=json.dumps({**text.to_dict(), "model_type": text.model_type}, default=str),
    )


def _state_bytes(text: Any) -> int:
    """Return the bytes that a layer of linear attention keeps of a sequence (gated delta rule)."""
    keys = int(text.linear_num_key_heads) * int(text.linear_key_head_dim)
    heads = int(text.linear_num_value_heads)
    values = heads * int(text.linear_value_head_dim)
    convolved = (2 * keys + values) * int(text.linear_conv_kernel_dim)
    return 4 * (convolved + values * int(text.linear_key_head_dim))


def _linear_layers(model: Any) -> tuple[tuple[str, int, int], ...]:
    """Return name, inputs and outputs of each linear layer but the output layer."""
    from transformers.pytorch_utils import Conv1D

    output = model.get_output_embeddings()
    found = []
    for name, module in model.named_modules():
        if module is output:
            continue
        if isinstance(module, torch.nn.Linear):
            found.append((name, module.in_features, module.out_features))
        elif isinstance(module, Conv1D):
            found.append((name, *module.weight.shape))
    return tuple(found)
