"""Completers: messages in, text out, with token ids and log-probabilities when they can.

`hf.py` generates with the policy itself, `scripted.py` says what a function says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

from harness.rollout import Completion


class Message(TypedDict):
    """One message of a chat: role `system`, `user` or `assistant`, and its text."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample.

    Attributes:
        temperature: 0 takes the most likely token.
        max_tokens: Longest response in tokens.
    """

    temperature: float = 1.0
    max_tokens: int = 512


class Completer(Protocol):
    """Anything that answers messages. Many calls may be under way at once."""

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response; equal messages, sampling and seed give an equal one."""
        ...
