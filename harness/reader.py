"""What a model reads and says, in tokens: its tokenizer and stop tokens, without its weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from harness.chats import Chats
from harness.completers import Message
from harness.errors import ConfigError

if TYPE_CHECKING:
    from harness.vision import Vision

_REMEMBERED_TEXTS = 16384


class Reader:
    """A tokenizer as prompts and answers need it; whatever runs the model, its prompts are these.

    Args:
        tokenizer: With a chat template.
        generation_config: Of the model; it may name more tokens that end a response.
        vision: What prepares images, or None.

    Attributes:
        chats: What writes chats as tokens.
    """

    def __init__(
        self, tokenizer: Any, generation_config: Any, vision: Vision | None = None
    ) -> None:
        """Raise `ConfigError` if the tokenizer has no chat template."""
        if tokenizer.chat_template is None:
            raise ConfigError("the tokenizer has no chat template: use an instruction-tuned model")
        self.tokenizer, self._generation_config = tokenizer, generation_config
        # Prompts come again and again.
        self._encode = lru_cache(_REMEMBERED_TEXTS)(self._encode_anew)
        self.chats = Chats(tokenizer, self.encode, vision)

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a response."""
        configured = self._generation_config.eos_token_id
        ids = configured if isinstance(configured, list) else [configured]
        return frozenset(i for i in [*ids, self.tokenizer.eos_token_id] if i is not None)

    def encode_chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of a chat, up to where the assistant's next answer begins.

        Earlier answers keep the tokens that they bring with them; see `Chats`.

        Raises:
            ConfigError: The chat template does not keep earlier answers.
        """
        return self.chats.encode(messages, self.stop_ids)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text, special ones recognised, none added."""
        return self._encode(text)

    def _encode_anew(self, text: str) -> tuple[int, ...]:
        encoding = self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        return tuple(encoding.ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))
