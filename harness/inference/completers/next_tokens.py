"""Keeps next-token distributions after repeated prompts, while the weights stay the same.

The distribution after a prompt and a part of an answer is computed once; all requests that come to
this point draw their own tokens from it. V tokens in the vocabulary.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Asker = TypeVar("Asker")

LARGEST_VOCABULARY: Final = 16_384
"""Distributions over more tokens are not kept: the memory would hold too few of them."""

LARGEST_MEMORY: Final = 2**29
"""Bytes of the distributions; those of the prompts that came up longest ago are dropped."""


@dataclass(slots=True, eq=False)
class Point(Generic[Asker]):
    """A prompt and a part of an answer."""

    prompt: Prompt[Asker]
    # [V], of the next token as it is sampled; None until the model was run.
    logprobs: NDArray[np.float32] | None = None
    is_asked: bool = False  # a request is on its way through the model
    # Other requests that wait for the same answer.
    waiting: list[Asker] = field(default_factory=list)
    _after: dict[int, Point[Asker]] = field(default_factory=dict)

    def after(self, token: int) -> Point[Asker]:
        """Return the point behind one more token."""
        point = self._after.get(token)
        if point is None:
            point = self._after[token] = Point(self.prompt)
        return point

    def draw(self, uniform: float, *, greedy: bool) -> tuple[int, float]:
        """Return the token that a random number in [0, 1) selects, and its log-probability."""
        assert self.logprobs is not None
        if greedy:
            token = int(self.logprobs.argmax())
        else:
            cumulative = np.exp(self.logprobs).cumsum()
            place = np.searchsorted(cumulative, np.float32(uniform) * cumulative[-1], side="right")
            token = min(int(place), len(cumulative) - 1)
        return token, float(self.logprobs[token])

    def learn(self, logprobs: NDArray[np.float32]) -> list[Asker]:
        """Keep a distribution; return the requests that waited for it."""
        self.logprobs = logprobs.copy()
        self.prompt.take(logprobs.nbytes)
        return self.release()

    def release(self) -> list[Asker]:
        """Return the requests that wait; the next one that comes here asks the model."""
        self.is_asked, waiting = False, self.waiting
        self.waiting = []
        return waiting


@dataclass(slots=True, eq=False)
class Prompt(Generic[Asker]):
    """A prompt, with the bytes of the distributions behind it."""

    memory: NextTokens[Asker]
    size: int = 0

    def take(self, size: int) -> None:
        """Count the bytes of one more distribution."""
        self.size += size
        self.memory.take(size)


class NextTokens(Generic[Asker]):
    """The points of all prompts."""

    def __init__(self) -> None:
        self._size = 0
        self._starts: OrderedDict[Hashable, Point[Asker]] = OrderedDict()

    def start(self, key: Hashable) -> Point[Asker]:
        """Return the point behind a prompt; `key` has all that its distributions depend on."""
        point = self._starts.get(key)
        if point is None:
            point = self._starts[key] = Point(Prompt(self))
        self._starts.move_to_end(key)
        return point

    def take(self, size: int) -> None:
        """Count the bytes of a distribution; drop old prompts where there are too many."""
        self._size += size
        while self._size > LARGEST_MEMORY and len(self._starts) > 1:
            _, oldest = self._starts.popitem(last=False)
            self._size -= oldest.prompt.size
