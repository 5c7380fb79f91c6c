"""Tiny models with random weights, of transformers' own classes, of the families that train."""

import torch

from harness.model import tiny
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


def make_policy(family):
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = tiny.make_tokenizer([WORDS, *WORDS.split()] * 20, 400)
    config = AutoConfig.for_model(
        family,
        vocab_size=len(tokenizer),
        **SIZE | FAMILIES[family] | tiny.special_tokens(tokenizer),
    )
    torch.manual_seed(1)
    policy = Policy(AutoModelForCausalLM.from_config(config), tokenizer, "cpu")
    policy.model.generation_config.eos_token_id = list(range(2, 60))  # answers of many lengths
    return policy
