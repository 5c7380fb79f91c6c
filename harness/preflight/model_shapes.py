"""Sizes of a model before its weights are loaded.

transformers builds the model on the `meta` device, where tensors have shapes and no memory. So the
sizes are exact for every architecture that transformers has.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from harness.config import LoraConfig, PolicyConfig
from harness.model import tiny, tiny_vl
from harness.model.vision import MODEL_TYPES
from harness.types.errors import ConfigError

KNOWN: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "known_models.toml").read_text(encoding="utf-8")
)
"""Fields of the `config.json` of the models in the recipes, by their names on the hub."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a causal language model.

    Attributes:
        parameters: Number of all parameters, those of a vision model included.
        hidden: Width of the hidden states.
        layers: Number of transformer layers.
        queries: Width of all queries of a layer.
        keys: Width of all keys of a layer, and of all values.
        feed_forward: Width of the feed-forward layers; of a mixture of experts, of all experts that
            one token passes through.
        vocabulary: Rows of the embedding.
        max_length: Longest sequence in tokens.
        linear: Name, inputs and outputs of each linear layer that can have an adapter.
    """

    parameters: int
    hidden: int
    layers: int
    queries: int
    keys: int
    feed_forward: int
    vocabulary: int
    max_length: int
    linear: tuple[tuple[str, int, int], ...] = ()

    def adapter_parameters(self, lora: LoraConfig) -> int:
        """Return the number of parameters of low-rank adapters."""
        every = tuple(lora.targets) == ("all-linear",)
        return sum(
            lora.rank * (inputs + outputs)
            for name, inputs, outputs in self.linear
            if every or name.rpartition(".")[2] in lora.targets
        )

    def cache_bytes(self, number_bytes: int) -> int:
        """Return the bytes of the keys and values of one token."""
        return 2 * self.layers * self.keys * number_bytes


def shape_of(policy: PolicyConfig) -> Shape:
    """Return the shape of a run's model; a tiny one counts with its largest vocabulary.

    Raises:
        ConfigError: The model is not on this machine and not in `KNOWN`, or transformers does not
            know its architecture.
    """
    if policy.model == "tiny":
        return measure(tiny.architecture(policy.tiny, policy.tiny.vocabulary))
    if policy.model == "tiny-vl":
        return measure(tiny_vl.architecture(policy.tiny, policy.tiny.vocabulary))
    from transformers import AutoConfig

    file = config_file_of(policy.model)
    if file is None and policy.model not in KNOWN:
        raise ConfigError(
            f"policy.model {policy.model!r} is not on this machine, and its shape is not known: "
            f"download it with `hf download {policy.model}`, or use one of {', '.join(KNOWN)}"
        )
    try:
        if file is None:
            return measure(AutoConfig.for_model(**KNOWN[policy.model]))
        return measure(AutoConfig.from_pretrained(file.parent, trust_remote_code=False))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as e:
        raise ConfigError(
            f"the shape of {policy.model!r} cannot be read from its config.json: {e}"
        ) from e


def config_file_of(model: str) -> Path | None:
    """Return the `config.json` of a model, in a folder or in the hub's cache; None if missing."""
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
    """Return the shape of the model that a transformers configuration describes.

    Raises:
        ValueError: It is not the configuration of a model that generates text.
    """
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    has_images = config.model_type in MODEL_TYPES
    with torch.device("meta"):
        kind = AutoModelForImageTextToText if has_images else AutoModelForCausalLM
        model = kind.from_config(config)  # type: ignore[no-untyped-call]
    text = config.get_text_config()
    heads = int(text.num_attention_heads)
    head = int(getattr(text, "head_dim", None) or text.hidden_size // heads)
    return Shape(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        hidden=int(text.hidden_size),
        layers=int(text.num_hidden_layers),
        queries=heads * head,
        keys=int(getattr(text, "num_key_value_heads", None) or heads) * head,
        feed_forward=_feed_forward(text),
        vocabulary=int(text.vocab_size),
        max_length=int(text.max_position_embeddings),
        linear=_linear_layers(model),
    )


def _feed_forward(text: Any) -> int:
    """Return the feed-forward width that one token passes through in a layer."""
    experts = getattr(text, "num_experts_per_tok", None)
    width = getattr(text, "moe_intermediate_size", None)
    if experts and width:
        return int(experts * width)
    return int(getattr(text, "intermediate_size", None) or 4 * text.hidden_size)


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
