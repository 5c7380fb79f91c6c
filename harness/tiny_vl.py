"""A tiny Qwen2.5-VL with its tokenizer and image processor: random weights, nothing downloaded.

Its patches are 8 pixels wide and four make a token, so a token is 16 x 16 pixels: a cell of a grid
drawn at 16 pixels per cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import torch

from harness import tiny
from harness.tiny import TinyConfig

IMAGE_TOKEN: Final = "<|image_pad|>"  # noqa: S105 (a token of text)
_VISION_START, _VISION_END, _VIDEO = "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"
_PATCH, _MERGE, _FRAMES = 8, 2, 2
_VISION_LAYERS = 2
_CHAT_TEMPLATE: Final = (
    "{% for message in messages %}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' if part['type'] == 'image' "
    "else part['text'] }}"
    "{% endfor %}{% endif %}"
    "{{ '<|im_end|>' if message['role'] == 'assistant' else '<|im_start|>' }}{% endfor %}"
)


def make_tokenizer(corpus: Iterable[str], vocabulary: int) -> Any:
    """Return the tokenizer of `tiny.make_tokenizer` with the tokens that surround images.

    Args:
        corpus: Texts as they will occur.
        vocabulary: Most tokens, at least 300.
    """
    marks = (_VISION_START, _VISION_END, IMAGE_TOKEN, _VIDEO)
    return tiny.make_tokenizer(corpus, vocabulary, marks, _CHAT_TEMPLATE)


def make_image_processor() -> Any:
    """Return the image processor; images keep their size if it is a multiple of 16 pixels."""
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    return Qwen2VLImageProcessorPil(
        patch_size=_PATCH, merge_size=_MERGE, temporal_patch_size=_FRAMES
    )


def make_model(config: TinyConfig, tokenizer: Any, seed: int) -> Any:
    """Return a Qwen2.5-VL with random weights drawn from `seed`."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    token_id = tokenizer.convert_tokens_to_ids
    architecture = Qwen2_5_VLConfig(
        text_config=_text_settings(config, tokenizer),
        vision_config=vision_settings(config),
        image_token_id=token_id(IMAGE_TOKEN),
        video_token_id=token_id(_VIDEO),
        vision_start_token_id=token_id(_VISION_START),
        vision_end_token_id=token_id(_VISION_END),
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen2_5_VLForConditionalGeneration(architecture)


def _text_settings(config: TinyConfig, tokenizer: Any) -> dict[str, Any]:
    half = config.hidden // config.heads // 2
    plane = (
        3 * half // 8
    )  # of the rotations, as the big ones share them out: time 2, height 3, width 3
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": config.hidden,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "max_position_embeddings": config.max_length,
        "initializer_range": config.initial_std,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e6,
            "mrope_section": [half - 2 * plane, plane, plane],
        },
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def vision_settings(config: TinyConfig) -> dict[str, Any]:
    """Return the description of the part that sees, in the words of `config.json`."""
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
        "initializer_range": config.initial_std,
    }
