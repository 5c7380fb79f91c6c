"""Tiny GGUF files, written by the package gguf from models of transformers' own classes."""

import json
import string

import any_model
import gguf
import numpy as np

ARCHITECTURES = {
    "llama": (gguf.MODEL_ARCH.LLAMA, "llama"),
    "qwen2": (gguf.MODEL_ARCH.QWEN2, "qwen2"),
    "qwen3": (gguf.MODEL_ARCH.QWEN3, "qwen3"),
    "gemma2": (gguf.MODEL_ARCH.GEMMA2, "gemma2"),
    "gemma3_text": (gguf.MODEL_ARCH.GEMMA3, "gemma3"),
}


LEFT_OUT = ""
"""Name of a tensor that files lack."""

SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"]
BYTES = [f"<0x{i:02X}>" for i in range(256)]
PIECES = [*SPECIAL, *BYTES, "\u2581", *string.ascii_lowercase, "\u2581go", "go"]
"""The vocabulary of a tiny SentencePiece tokenizer, which Gemma's files have."""

CHATS = (
    "{% for m in messages %}<start_of_turn>{{ m.role }} {{ m.content }}<end_of_turn>{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model {% endif %}"
)


GEMMA = {
    "head_dim": 16,
    "sliding_window": 8,
    "vocab_size": len(PIECES),
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
MODELS = {
    "llama": {},
    "qwen2": {},
    "qwen3": {"head_dim": 128},
    "gemma2": GEMMA,
    "gemma3_text": GEMMA,
}
"""Families of models, with what makes them tiny."""


def written(tmp_path, family="llama", kind=gguf.GGMLQuantizationType.F32, **changes):
    """Write the file of a tiny model of a family; return both."""
    model = any_model.model_of(family, **MODELS[family])
    tokenizer = "pieces" if family.startswith("gemma") else any_model.TOKENIZER
    given = {"tokenizer": tokenizer, "kind": kind} | changes
    return write(tmp_path / f"{family}.gguf", model, **given), model


def write(file, model, tokenizer, kind=gguf.GGMLQuantizationType.F32, **changes):
    """Write a model as llama.cpp's own converter does; `changes` are other fields of the header.

    The tokenizer is one of transformers, "pieces" or None. `architecture` names another one,
    `tensors` adds some.
    """
    config = model.config
    arch, name = ARCHITECTURES[config.model_type]
    writer = gguf.GGUFWriter(file, changes.pop("architecture", name))
    extra = changes.pop("tensors", {})
    _header(writer, config, name)
    if tokenizer is not None:
        _pieces(writer) if tokenizer == "pieces" else _tokenizer(writer, tokenizer)
    for key, value in changes.items():
        add = writer.add_string if isinstance(value, str) else writer.add_array
        add(key.replace("__", "."), value)
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    tied = config.tie_word_embeddings
    for key, weight in model.state_dict().items():
        if not (tied and key == "lm_head.weight"):
            _tensor(writer, names, key, weight.float().numpy(), config, name, kind)
    for key, values in extra.items():
        writer.add_tensor(key, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _header(writer, config, name):
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_rope_dimension_count(head)
    writer.add_key_length(head)
    writer.add_value_length(head)
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    if name.startswith("gemma"):
        writer.add_sliding_window(config.sliding_window)


def _tokenizer(writer, tokenizer):
    """Write a byte-level BPE tokenizer."""
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda one: one[1])
    special = set(tokenizer.added_tokens_decoder)
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([3 if i in special else 1 for _, i in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_bos_token_id(tokenizer.pad_token_id)
    writer.add_chat_template(tokenizer.chat_template)


def _pieces(writer):
    """Write the SentencePiece tokenizer."""
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(PIECES)
    kinds = {**dict.fromkeys(SPECIAL, 3), **dict.fromkeys(BYTES, 6)}
    writer.add_token_types([kinds.get(piece, 1) for piece in PIECES])
    writer.add_token_scores([-float(i) for i, _ in enumerate(PIECES)])
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_chat_template(CHATS)


def _tensor(writer, names, key, weight, config, name, kind):
    stem, _, ending = key.rpartition(".")
    if name == "llama" and stem.endswith(("q_proj", "k_proj")):
        heads = config.num_attention_heads if "q_proj" in stem else config.num_key_value_heads
        weight = _permuted(weight, heads)
    if name.startswith("gemma") and "norm" in key:
        weight = weight + 1
    kind = kind if weight.ndim > 1 else gguf.GGMLQuantizationType.F32
    stored = gguf.quantize(np.ascontiguousarray(weight), kind)
    own = f"{names.get_name(stem)}.{ending}"
    if own != LEFT_OUT:
        writer.add_tensor(own, stored, raw_dtype=kind)


def _permuted(weight, heads):
    """Reorder rows of queries or keys, which llama.cpp rotates in neighbouring pairs."""
    rows, columns = weight.shape
    parts = weight.reshape(heads, 2, rows // heads // 2, columns)
    return parts.swapaxes(1, 2).reshape(rows, columns)
