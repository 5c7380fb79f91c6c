"""Models, tokenizers and image processors from folders and hub names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError

from harness.errors import ConfigError
from harness.vision import MODEL_TYPES, load_image_processor


@dataclass(frozen=True, slots=True)
class Parts:
    """What makes a policy.

    Attributes:
        model: A causal language model, or one that sees.
        tokenizer: Its tokenizer.
        image_processor: Of a model that sees, else None.
    """

    model: Any
    tokenizer: Any
    image_processor: Any


def load_parts(
    path: str, revision: str | None = None, half: bool = False, attention: str | None = None
) -> Parts:
    """Return the parts of a local folder or a hub name.

    Args:
        path: The folder or name.
        revision: Branch, tag or commit of a hub name; None takes its main branch.
        half: Weights are in bfloat16, else in float32.
        attention: Transformers' name of an attention; None leaves its choice.

    Raises:
        ConfigError: They cannot be loaded; the message tells what transformers said.
    """
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoTokenizer,
    )

    dtype = torch.bfloat16 if half else torch.float32
    chosen = {} if attention is None else {"attn_implementation": attention}
    try:
        sees = AutoConfig.from_pretrained(path, revision=revision).model_type in MODEL_TYPES
        tokenizer = AutoTokenizer.from_pretrained(path, revision=revision)
        image_processor = load_image_processor(path, revision) if sees else None
        kind = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        model = kind.from_pretrained(path, revision=revision, dtype=dtype, **chosen)
    except (OSError, ValueError, ImportError, SafetensorError) as e:
        raise ConfigError(f"policy.model {path!r} cannot be loaded: {e}") from e
    return Parts(model, tokenizer, image_processor)
