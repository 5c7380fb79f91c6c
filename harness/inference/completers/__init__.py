"""Completers: messages in, text out, with token ids and log-probabilities where they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentgyms.models import types
from harness.types.messages import Message
from harness.types.rollout import Completion

__all__ = ["Completer", "Sampling"]


@dataclass(frozen=True, slots=True)
class Sampling(types.Sampling):
    """Sampling options of a policy.

    Attributes:
        max_thought_tokens: A thought of so many tokens is closed; None sets no limit.
    """

    max_thought_tokens: int | None = None


class Completer(Protocol):
    """Anything that answers messages. Many calls may run at once."""

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response; equal messages, sampling and seed give an equal response."""
        ...
