"""Thoughts of answers by their tokens: where the first one begins and ends, and its limit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from harness.model.tokenizer import ChatTokenizer

_OPENING: Final = "<think>"
_CLOSING: Final = "</think>"

CLOSING_TEXT: Final = f"\n{_CLOSING}\n\n"
"""The texts that chat templates write between a thought and the rest of an answer."""


class Thought(NamedTuple):
    """The first thought of an answer."""

    # Index of its first token, in the generated ones: of the opening tag where the model writes it,
    # 0 where the prompt has opened the thought.
    begin: int
    end: int  # index after its last token, the closing tag excluded
    closed: bool


def find_thought(chat_tokenizer: ChatTokenizer, ids: Sequence[int]) -> Thought | None:
    """Return the first thought of an answer, None without one.

    A thought that the prompt opens and closes is an empty one. `ids` are all generated tokens.
    """
    text, before = chat_tokenizer.decode_answer(ids), len(chat_tokenizer.chat_encoder.prefill)
    start = text.find(_OPENING)
    if start < 0:
        return None
    begin = _tokens_before(chat_tokenizer, ids, start - before)
    stop = text.find(_CLOSING, start)
    end = _tokens_before(chat_tokenizer, ids, stop - before) if stop >= 0 else len(ids)
    return Thought(begin, end, stop >= 0)


def _tokens_before(chat_tokenizer: ChatTokenizer, ids: Sequence[int], position: int) -> int:
    """Return the number of tokens that end at or before a position of their text."""
    if position <= 0:
        return 0
    counts = range(len(ids) + 1)
    return bisect_right(counts, position, key=lambda n: len(chat_tokenizer.decode(ids[:n]))) - 1


class ThoughtLimit:
    """The largest number of tokens of an answer's first thought; None sets no limit."""

    def __init__(self, chat_tokenizer: ChatTokenizer, most: int | None) -> None:
        """Encode the closing text."""
        self._chat_tokenizer, self._most = chat_tokenizer, most
        self.closing = () if most is None else chat_tokenizer.encode(CLOSING_TEXT)

    def room(self, ids: Sequence[int]) -> int | None:
        """Return the number of tokens that may follow before the next check of the thought.

        0 closes the thought now; None means that no later thought can be the first one, or no
        limit.
        """
        if self._most is None:
            return None
        thought = find_thought(self._chat_tokenizer, ids)
        if thought is None:  # the last tokens may be the begin of an opening tag
            text = self._chat_tokenizer.decode(ids)
            partial = next((n for n in range(6, 0, -1) if text.endswith(_OPENING[:n])), 0)
            begun = len(ids) - _tokens_before(self._chat_tokenizer, ids, len(text) - partial)
            return max(1, self._most - (begun if partial else 0))
        return None if thought.closed else max(0, self._most - (len(ids) - thought.begin))
