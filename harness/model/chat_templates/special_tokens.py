"""Special tokens of a tokenizer: marks of chats, and tags that are words of prompts and answers.

Marks begin and end messages: an answer's text does not show them, and a text from an environment
must not have them. Some tokenizers make special tokens of tags such as `<action>`, too: prompts
name these, and parsers look for them in answers, so they stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from harness import prompts
from harness.types.errors import ConfigError

_MARKUP: Final = re.compile(r"[\x00<>\[\]|]")
"""Characters that distinguish a special token from a word."""

_NAMES: Final = ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id")
"""Tokens with a special meaning, which are never tags."""


class SpecialTokens:
    """The special tokens of a tokenizer: `tags` are words of prompts, `ends` may end an answer."""

    def __init__(
        self,
        tokenizer: Any,
        # Returns the tokens of a text; special tokens are recognised.
        encode: Callable[[str], tuple[int, ...]],
        marks: Sequence[str] = (),  # further texts that are not allowed in messages
    ) -> None:
        """Raise `ConfigError` if the tokenizer changes a tag that is a special token."""
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        own = {getattr(tokenizer, name) for name in _NAMES}
        tags = {i for i, token in added.items() if i not in own and prompts.is_tag(str(token))}
        special = {i: str(token) for i, token in added.items() if token.special}
        begins = {tokenizer.bos_token_id} - {tokenizer.eos_token_id}
        self.tags = tuple(sorted(special[i] for i in tags if i in special))
        self.ends = frozenset(added) - tags - begins
        self._hidden = frozenset(special) - tags
        self._pattern = _pattern([*marks, *(special[i] for i in self._hidden)])
        for tag in self.tags:
            self._check(tag, self.decode(encode(f"go {tag} north")))

    def escape(self, text: str) -> str:
        """Return a text with its marks of chats changed to plain words."""
        return self._pattern.sub(lambda mark: _MARKUP.sub(" ", mark[0]), text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without marks of chats."""
        if not self.tags:
            return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))
        shown = [i for i in ids if i not in self._hidden]
        return str(self._tokenizer.decode(shown, skip_special_tokens=False))

    def _check(self, tag: str, read: str) -> None:
        if tag not in read:
            raise ConfigError(
                f"the tokenizer reads {tag} as {read!r:.60}, and prompts and answers need it as it "
                "is: make it no special token, or use another model"
            )


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))
