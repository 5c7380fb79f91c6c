"""A tiny Qwen2 and its tokenizer with random weights, without a download.

It has the architecture, chat roles and special tokens of the large models. One this small learns to
copy names from its prompt only with a large deviation of the initial weights and many heads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch

from harness.config import TinyConfig
from harness.model.chat_templates import trusted

INITIAL_STD: Final = 0.1
"""Standard deviation of the initial weights."""
END_OF_TEXT: Final = "<|endoftext|>"
TURN_START: Final = "<|im_start|>"
TURN_END: Final = "<|im_end|>"
_QWEN2_PIECES: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def make_tokenizer(
    corpus: Iterable[str],
    vocabulary: int,  # largest number of tokens, at least 300
    marks: Sequence[str] = (),
    chat_template: str = trusted.TINY,
) -> Any:
    """Return a byte-level BPE tokenizer trained on `corpus`, with Qwen2's pre-tokenizer.

    When transformers loads a Qwen2, it always uses Qwen2's pre-tokenizer, whatever was saved. A
    tokenizer trained with another one would encode texts differently after loading.
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


def architecture(config: TinyConfig, vocabulary: int, **tokens: Any) -> Any:
    """Return the configuration of a tiny Qwen2; `tokens` are ids such as `eos_token_id`."""
    from transformers import Qwen2Config

    return Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=config.hidden,
        intermediate_size=config.feed_forward,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.max_length,
        initializer_range=INITIAL_STD,
        tie_word_embeddings=True,
        **tokens,
    )


def make_model(config: TinyConfig, tokenizer: Any, seed: int) -> Any:
    """Return a Qwen2 with random weights drawn from `seed`."""
    from transformers import Qwen2ForCausalLM

    described = architecture(config, len(tokenizer), **special_tokens(tokenizer))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(described)


def special_tokens(tokenizer: Any) -> dict[str, int | None]:
    """Return the ids of a tokenizer's special tokens, as transformers' configurations name them."""
    return {
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
    }
