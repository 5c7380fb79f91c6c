"""Models, tokenizers and image processors from folders and hub names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.model import adapters, hub
from harness.model.vision import MODEL_TYPES, load_image_processor
from harness.model.weights import converted, strict_load
from harness.model.weights.stored_weights import StoredWeights, without_memory


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a policy."""

    model: Any  # a causal language model or a vision-language model
    tokenizer: Any
    image_processor: Any  # image processor of a vision-language model, else None
    stored: StoredWeights | None = None  # the weights of a model without memory, else None


def load_parts(
    path: str,
    revision: str | None = None,  # branch, tag or commit of a hub name; None takes its main branch
    half: bool = False,  # weights are in bfloat16, else in float32
    attention: str | None = None,  # transformers' name of an attention; None takes its default
    *,
    # Make the model without memory for its weights if they can be read in parts: from safetensors
    # files on this machine with the model's own names.
    deferred: bool = False,
    setting: str = "policy.model",  # the setting that names it, for errors
) -> Parts:
    """Return the parts of a folder, hub name or converted model; `ConfigError` if that fails."""
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoTokenizer,
    )

    dtype = torch.bfloat16 if half else torch.float32
    chosen: dict[str, Any] = {} if attention is None else {"attn_implementation": attention}
    hub.check_name(path, setting)
    path = converted.folder_of(path, setting)
    source: dict[str, Any] = {
        "revision": revision,
        "trust_remote_code": False,
        **hub.load_options(path),
    }
    try:
        config = AutoConfig.from_pretrained(path, **source)
        sees = config.model_type in MODEL_TYPES
        tokenizer = AutoTokenizer.from_pretrained(path, **source)
        image_processor = load_image_processor(path, source) if sees else None
        kind = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        model, stored = None, None
        if deferred:
            model, stored = _deferred(kind, config, path, revision, dtype=dtype, **chosen)
        if stored is None:
            model = strict_load.load(kind, path, dtype=dtype, **source, **chosen)
        strict_load.check_tokens(model, tokenizer)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as e:  # of damaged files, transformers raises errors of any kind
        raise hub.not_loaded(setting, path, e) from e
    return Parts(model, tokenizer, image_processor, stored)


def _deferred(
    kind: Any, config: Any, path: str, revision: str | None, **chosen: Any
) -> tuple[Any, StoredWeights | None]:
    """Return a model without memory and its weights, or None if it can only be loaded whole."""
    folder = hub.weights_folder(path, revision)
    tensors = strict_load.tensors_of(path, revision)
    other = ("transformers_weights", "quantization_config")  # files of other names or numbers
    if folder is None or tensors is None or any(getattr(config, key, None) for key in other):
        return None, None
    empty = _without_weights(kind, config, folder, **chosen)
    return empty, StoredWeights.of(tensors, empty)


def _without_weights(kind: Any, config: Any, folder: Path, **chosen: Any) -> Any:
    """Return a model as transformers loads it, without memory for its weights."""
    from transformers import GenerationConfig

    with without_memory():
        model = kind.from_config(config, **chosen)
    if (folder / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(folder)
    return model.eval()


def longest_sequence(config: Any) -> int:
    """Return the most tokens of a sequence for a transformers text configuration.

    Beyond its original length `longrope` has positions that depend on a batch's longest row.
    """
    longest = int(config.max_position_embeddings)
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") != "longrope":
        return longest
    name = "original_max_position_embeddings"
    return min(longest, int(rope.get(name) or getattr(config, name, None) or longest))


def tokenizer_of(path: str, setting: str = "policy.model") -> Any:
    """Return the tokenizer of a folder, adapters' base or hub name; errors name `setting`."""
    from transformers import AutoTokenizer

    path = adapters.base_of(path) or path
    hub.check_name(path, setting)
    path = converted.folder_of(path, setting)
    source: dict[str, Any] = {"trust_remote_code": False, **hub.load_options(path)}
    try:
        return AutoTokenizer.from_pretrained(path, **source)
    except Exception as e:  # of damaged files, transformers raises errors of any kind
        raise hub.not_loaded(setting, path, e) from e
