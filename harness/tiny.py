"""A tiny Qwen2 and its tokenizer, made on the spot: random weights, nothing downloaded.

It has the architecture, chat roles and special tokens of its big relatives, so whatever trains it
trains them. Two things decide whether so small a model learns to copy names from its prompt instead
of memorising: weights drawn with a large standard deviation, and many heads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

END_OF_TEXT: Final = "<|endoftext|>"
TURN_START: Final = "<|im_start|>"
TURN_END: Final = "<|im_end|>"
_QWEN2_PIECES: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CHAT_TEMPLATE: Final = (
    "{% for message in messages %}{{ message['content'] }}"
    "{{ '<|im_end|>' if message['role'] == 'assistant' else '<|im_start|>' }}{% endfor %}"
)


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Size of the tiny model.

    Attributes:
        layers: Transformer layers.
        hidden: Width.
        heads: Attention heads; also the key-value heads.
        feed_forward: Width of the feed-forward layer.
        vocabulary: Most tokens of the tokenizer, its 256 bytes included.
        max_length: Longest sequence in tokens.
        initial_std: Standard deviation of the initial weights.
    """

    layers: int = 2
    hidden: int = 128
    heads: int = 8
    feed_forward: int = 256
    vocabulary: int = 1024
    max_length: int = 2048
    initial_std: float = 0.1


def make_tokenizer(
    corpus: Iterable[str],
    vocabulary: int,
    marks: Sequence[str] = (),
    chat_template: str = _CHAT_TEMPLATE,
) -> Any:
    """Return a byte-level BPE tokenizer trained on `corpus`, with Qwen2's way of splitting text.

    transformers rebuilds that way from the model's type when it loads a Qwen2, whatever was saved,
    so a tokenizer trained with another one would read its own texts differently after a restart.

    Args:
        corpus: Texts as they will occur.
        vocabulary: Most tokens, at least 300.
        marks: More special tokens.
        chat_template: How a chat is written, in Jinja.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN2_PIECES), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT, TURN_START, TURN_END, *marks],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=END_OF_TEXT,
        eos_token=TURN_END,
        chat_template=chat_template,
        clean_up_tokenization_spaces=False,
    )


def make_model(config: TinyConfig, tokenizer: Any, seed: int) -> Any:
    """Return a Qwen2 with random weights drawn from `seed`."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    architecture = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden,
        intermediate_size=config.feed_forward,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.max_length,
        initializer_range=config.initial_std,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(architecture)
