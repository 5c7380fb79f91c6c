"""A tiny Qwen2.5-VL with random weights, without a download; its tokens are 16 x 16 pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch

from harness.config import TinyConfig
from harness.model import tiny
from harness.model.chat_templates import trusted

IMAGE_TOKEN: Final = "<|image_pad|>"  # noqa: S105 (a token of text)
_VISION_START, _VISION_END, _VIDEO = "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"
_PATCH, _MERGE, _FRAMES = 8, 2, 2
_VISION_LAYERS = 2
_NO_TOKENS: Final = MappingProxyType(
    {"eos_token_id": None, "pad_token_id": None, "bos_token_id": None}
)
"""Special tokens of a model without a tokenizer."""


def make_tokenizer(corpus: Iterable[str], vocabulary: int) -> Any:
    """Return the tokenizer of `tiny.make_tokenizer`, with the tokens that surround images."""
    marks = (_VISION_START, _VISION_END, IMAGE_TOKEN, _VIDEO)
    return tiny.make_tokenizer(corpus, vocabulary, marks, trusted.TINY_VL)


def make_image_processor() -> Any:
    """Return the image processor; images keep their size if it is a multiple of 16 pixels."""
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    return Qwen2VLImageProcessorPil(
        patch_size=_PATCH, merge_size=_MERGE, temporal_patch_size=_FRAMES
    )


def architecture(
    config: TinyConfig,
    vocabulary: int,
    # Ids of the language model's special tokens, such as `eos_token_id`.
    text_tokens: Mapping[str, int | None] = _NO_TOKENS,
    **image_tokens: Any,
) -> Any:
    """Return the configuration of a tiny Qwen2.5-VL; `image_tokens` are as `image_token_id`."""
    from transformers import Qwen2_5_VLConfig

    return Qwen2_5_VLConfig(
        text_config=_text_settings(config, vocabulary, text_tokens),
        vision_config=_vision_settings(config),
        tie_word_embeddings=True,
        **image_tokens,
    )


def make_model(config: TinyConfig, tokenizer: Any, seed: int) -> Any:
    """Return a Qwen2.5-VL with random weights drawn from `seed`."""
    from transformers import Qwen2_5_VLForConditionalGeneration

    token_id = tokenizer.convert_tokens_to_ids
    described = architecture(
        config,
        len(tokenizer),
        tiny.special_tokens(tokenizer),
        image_token_id=token_id(IMAGE_TOKEN),
        video_token_id=token_id(_VIDEO),
        vision_start_token_id=token_id(_VISION_START),
        vision_end_token_id=token_id(_VISION_END),
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen2_5_VLForConditionalGeneration(described)


def _text_settings(
    config: TinyConfig, vocabulary: int, tokens: Mapping[str, int | None]
) -> dict[str, Any]:
    half = config.hidden // config.heads // 2
    plane = 3 * half // 8  # rotations as in the large models: time 2, height 3, width 3 eighths
    return {
        "vocab_size": vocabulary,
        "hidden_size": config.hidden,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "max_position_embeddings": config.max_length,
        "initializer_range": tiny.INITIAL_STD,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e6,
            "mrope_section": [half - 2 * plane, plane, plane],
        },
        **tokens,
    }


def _vision_settings(config: TinyConfig) -> dict[str, Any]:
    return {
        "depth": _VISION_LAYERS,
        "hidden_size": config.hidden,
        "intermediate_size": config.feed_forward,
        "num_heads": config.heads,
        "out_hidden_size": config.hidden,
        "patch_size": _PATCH,
        "spatial_merge_size": _MERGE,
        "temporal_patch_size": _FRAMES,
        "window_size": 4 * _PATCH * _MERGE,
        "fullatt_block_indexes": [_VISION_LAYERS - 1],
        "initializer_range": tiny.INITIAL_STD,
    }
