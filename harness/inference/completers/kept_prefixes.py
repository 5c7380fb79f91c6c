"""Keys and values of texts that were read or generated, for prompts that begin like them.

Texts that were used longest ago are dropped. KV heads of keys, T tokens, D numbers a head.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch

DEFAULT_BYTES: Final = 10**9
"""Bytes of the texts that are kept, where nothing is given."""

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KeptText:
    """The keys and values of a text in each layer, [KV, T, D]."""

    keys: Sequence[torch.Tensor]
    values: Sequence[torch.Tensor]

    @property
    def size(self) -> int:
        """Number of bytes."""
        return sum(one.nbytes for one in (*self.keys, *self.values))


class KeptPrefixes:
    """Texts with their keys and values, at most `most_bytes`; none is the beginning of another."""

    def __init__(self, most_bytes: int = DEFAULT_BYTES) -> None:
        self.most_bytes, self.size = most_bytes, 0
        self._texts: OrderedDict[Tokens, KeptText] = OrderedDict()  # last used last
        self._sorted: list[Tokens] = []

    def __len__(self) -> int:
        return len(self._sorted)

    def find(self, tokens: Tokens) -> tuple[int, KeptText | None]:
        """Return the longest beginning that a text has, in tokens, and the text; or 0 and None."""
        best, length = None, 0
        for one in self._beside(tokens):
            common = common_length(one, tokens)
            if common > length:
                best, length = one, common
        if best is None:
            return 0, None
        self._texts.move_to_end(best)
        return length, self._texts[best]

    def add(self, tokens: Tokens, text: KeptText) -> None:
        """Keep a text in the place of its own beginning; drop old ones where there are too many."""
        for one in list(self._beside(tokens)):
            common = common_length(one, tokens)
            if common == len(tokens):
                return
            if common == len(one):
                self._drop(one)
        self._sorted.insert(bisect_left(self._sorted, tokens), tokens)
        self._texts[tokens] = text
        self.size += text.size
        while self.size > self.most_bytes:
            self._drop(next(iter(self._texts)))

    def clear(self) -> None:
        """Drop all texts: the weights have changed."""
        self._texts.clear()
        self._sorted.clear()
        self.size = 0

    def _beside(self, tokens: Tokens) -> Iterator[Tokens]:
        """Yield the neighbours in the order of texts: one of them has the longest beginning."""
        place = bisect_left(self._sorted, tokens)
        yield from self._sorted[max(0, place - 1) : place + 1]

    def _drop(self, tokens: Tokens) -> None:
        self.size -= self._texts.pop(tokens).size
        del self._sorted[bisect_left(self._sorted, tokens)]


def common_length(one: Tokens, other: Tokens) -> int:
    """Return the number of tokens at the beginning of both texts."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
