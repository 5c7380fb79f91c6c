"""How fast a model answers, and how much of its work goes into answers without an end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

from harness.types.rollout import Completion

ENOUGH: Final = 16
"""Answers after which a hint may be given."""

_MOST: Final = 0.5
"""Share of the tokens in answers that reached the limit, above which it is given."""

_MIN: Final = 16
"""The least tokens of an answer that a hint proposes."""


class AnswerPace:
    """Counts a model's answers and their tokens; `limit` is the longest answer in tokens.

    Tokens of unfinished answers count, too, if the completer counts its tokens (`generated`).
    """

    def __init__(
        self,
        limit: int,
        completer: object = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit, self._completer, self._clock = limit, completer, clock
        self._began: float | None = None
        self._before = 0
        self._ended: list[int] = []
        self._cut: list[int] = []

    def begin(self) -> None:
        """Start the clock, if it does not run."""
        if self._began is None:
            self._began = self._clock()
            self._before = self._generated()

    def _generated(self) -> int:
        return int(getattr(self._completer, "generated", 0))

    def add(self, completion: Completion) -> None:
        """Count an answer."""
        self.begin()
        tokens = len(completion.response_ids) or completion.usage.response
        (self._ended if completion.finished else self._cut).append(tokens)

    def text(self) -> str:
        """Return the number of answers and the tokens a second, "" before the first token."""
        answers = len(self._ended) + len(self._cut)
        tokens = max(sum(self._ended) + sum(self._cut), self._generated() - self._before)
        if self._began is None or not tokens:
            return ""
        pace = tokens / max(self._clock() - self._began, 1e-9)
        return f"{answers} answers, {pace:.3g} tokens/s"

    def most_seconds(self, answers: int) -> float | None:
        """Return the seconds for `answers` if the rest are longest; None before a token."""
        ended = [*self._ended, *self._cut]
        tokens = max(sum(ended), self._generated() - self._before)
        if self._began is None or not tokens:
            return None
        left = (answers - len(ended)) * self._limit - (tokens - sum(ended))
        return max(0, left) * (self._clock() - self._began) / tokens

    def hint(self, setting: str) -> str | None:
        """Return a hint if most tokens of at least 16 answers are in those that reached the limit.

        `setting` is the limit's key. The hint proposes twice the length of nine in ten of the
        answers that have an end. If none has, it proposes a quarter of the limit, and four times
        the limit for a model that thinks.
        """
        cut, total = sum(self._cut), sum(self._ended) + sum(self._cut)
        if len(self._ended) + len(self._cut) < ENOUGH or cut <= _MOST * total:
            return None
        wanted = self._limit // 4
        ends = f"none has an end; thoughts need room for one: --set {setting}={4 * self._limit}"
        if len(self._ended) > 1:
            usual = statistics.quantiles(self._ended, n=10)[-1]
            wanted = min(wanted * 2, _power_of_two(2 * usual))
            ends = f"nine in ten of those with an end have at most {usual:.0f} tokens"
        return (
            f"{cut / total:.0%} of the tokens are in answers that reached {setting} = "
            f"{self._limit} and were cut off there; {ends}. A lower limit takes less time: "
            f"--set {setting}={max(_MIN, wanted)}"
        )


def _power_of_two(least: float) -> int:
    power = 1
    while power < least:
        power *= 2
    return power
