"""The budget of a search at one task: environment steps and tokens of the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from harness.inference.completers import Completer, Sampling
from harness.types.messages import Message, texts_of, tools_of
from harness.types.rollout import Completion, Usage

_MARKS: Final = 32
"""Most tokens that a chat template adds to a message."""


class BudgetSpent(Exception):
    """A step or an answer would cost more than is left."""


class Budget:
    """Counts the environment steps and tokens of a search, and refuses to pass its limits.

    The cost of an answer is known only afterwards, so `most_tokens` are reserved before the call. A
    limit of None is no limit.
    """

    def __init__(self, max_steps: int | None = None, max_tokens: int | None = None) -> None:
        self._max_steps, self._max_tokens = max_steps, max_tokens
        self.steps, self.usage, self._reserved = 0, Usage(), 0

    def take_step(self) -> None:
        """Count the next environment step; raise `BudgetSpent` if none is left."""
        if self._max_steps is not None and self.steps >= self._max_steps:
            raise BudgetSpent
        self.steps += 1

    async def complete(
        self, completer: Completer, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return a model's answer; raise `BudgetSpent` if the longest one would pass the limit."""
        most = most_tokens(messages, sampling)
        spent = self.usage.prompt + self.usage.response + self._reserved
        if self._max_tokens is not None and spent + most > self._max_tokens:
            raise BudgetSpent
        self._reserved += most
        try:
            completion = await completer.complete(messages, sampling, seed)
        finally:
            self._reserved -= most
        self.usage += completion.usage
        return completion


def most_tokens(messages: Sequence[Message], sampling: Sampling) -> int:
    """Return the most tokens that a prompt and its answer may have.

    A text has no more tokens than bytes in UTF-8; a chat template adds its marks.
    """
    tools = tools_of(messages)
    texts = [*texts_of(messages), *([json.dumps(tools)] if tools else [])]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return size + _MARKS * (len(messages) + 1) + sampling.max_tokens


class Metered:
    """A completer whose answers are paid from a budget."""

    def __init__(self, completer: Completer, budget: Budget) -> None:
        self._completer, self._budget = completer, budget

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response; see `Budget.complete`."""
        return await self._budget.complete(self._completer, messages, sampling, seed)
