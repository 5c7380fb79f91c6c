"""Tiny models with random weights, of transformers' own classes, of the families that train."""

import torch

from harness.config import TinyConfig
from harness.model import tiny, tiny_vl
from harness.model.policy import Policy

WORDS = "you are in a corridor go left right door key box locked open take put the lamp shines at"
SIZE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 1024,
    "initializer_range": 0.05,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
FAMILIES = {
    "qwen2": {},
    "qwen3": {},
    "qwen3_moe": EXPERTS,
    "qwen3_5_text": LINEAR
    | {"num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention"] * 2},
    "llama": {},
    "gemma3_text": {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]},
}


SEEING = ("qwen2_5_vl", "qwen3_vl")
SEEN = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 4,
    "out_hidden_size": 32,
    "patch_size": 8,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "initializer_range": 0.05,
}
ROTATED = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 1, 1]}


def make_seeing(family, words=WORDS, max_length=256):
    """Return a policy that sees; Qwen3-VL adds images' features to the first layers, too."""
    tokenizer = tiny_vl.make_tokenizer([words, *words.split()] * 20, 400)
    if family == "qwen2_5_vl":
        size = TinyConfig(layers=2, hidden=32, heads=4, feed_forward=64, max_length=max_length)
        model = tiny_vl.make_model(size, tokenizer, seed=1)
    else:
        model = _qwen3_vl(tokenizer, max_length)
    return Policy(model, tokenizer, "cpu", tiny_vl.make_image_processor())


def _qwen3_vl(tokenizer, max_length):
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    names = {
        "image_token_id": tiny_vl.IMAGE_TOKEN,
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    text = SIZE | {"num_hidden_layers": 3, "vocab_size": len(tokenizer)}
    text |= {"max_position_embeddings": max_length}
    config = Qwen3VLConfig(
        text_config=text | {"rope_parameters": ROTATED} | tiny.special_tokens(tokenizer),
        vision_config=SEEN | {"num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1]},
        tie_word_embeddings=True,
        **{key: tokenizer.convert_tokens_to_ids(name) for key, name in names.items()},
    )
    torch.manual_seed(1)
    return Qwen3VLForConditionalGeneration(config)


def make_policy(family, **changes):
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = tiny.make_tokenizer([WORDS, *WORDS.split()] * 20, 400)
    config = AutoConfig.for_model(
        family,
        vocab_size=len(tokenizer),
        **SIZE | FAMILIES[family] | tiny.special_tokens(tokenizer) | changes,
    )
    torch.manual_seed(1)
    policy = Policy(AutoModelForCausalLM.from_config(config), tokenizer, "cpu")
    policy.model.generation_config.eos_token_id = list(range(2, 60))  # answers of many lengths
    return policy
