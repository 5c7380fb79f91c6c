"""Completers: messages in, text out, with token ids and log-probabilities when they can.

`hf.py` and `vllm.py` generate in this process. `vllm_servers.py` asks servers that training gives
its weights to, `openai.py` servers of chats, and `scripted.py` says what a function says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, Protocol, TypedDict

from agentgyms.chat.values import Sampling
from harness.errors import ContextOverflow
from harness.images import Image
from harness.rollout import Completion

__all__ = [
    "Completer",
    "Content",
    "ImagePart",
    "Message",
    "Sampling",
    "TextPart",
    "check_length",
    "images_of",
    "texts_of",
]


class TextPart(TypedDict):
    """A part of a message that is read."""

    type: Literal["text"]
    text: str


class ImagePart(TypedDict):
    """A part of a message that is seen."""

    type: Literal["image"]
    image: Image


Content = str | list[TextPart | ImagePart]
"""Of a message: its text, or its parts."""


class Message(TypedDict):
    """One message of a chat: role `system`, `user` or `assistant`, and its content.

    An assistant's may have `token_ids`, the tokens that were generated: a chat that goes on after
    it then keeps them as they are.
    """

    role: str
    content: Content
    token_ids: NotRequired[tuple[int, ...]]


def texts_of(messages: Sequence[Message]) -> list[str]:
    """Return the texts of a chat in order."""
    texts: list[str] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            texts.append(content)
        else:
            texts += [part["text"] for part in content if part["type"] == "text"]
    return texts


def images_of(messages: Sequence[Message]) -> tuple[Image, ...]:
    """Return the images of a chat in order."""
    return tuple(
        part["image"]
        for message in messages
        if not isinstance(message["content"], str)
        for part in message["content"]
        if part["type"] == "image"
    )


def check_length(prompt_ids: Sequence[int], sampling: Sampling, limit: int) -> None:
    """Refuse a prompt that leaves no room for the longest response.

    Raises:
        ContextOverflow: Both together are longer than `limit` tokens.
    """
    if len(prompt_ids) + sampling.max_tokens > limit:
        raise ContextOverflow(
            f"a prompt of {len(prompt_ids)} tokens and {sampling.max_tokens} for the response "
            f"exceed the limit of {limit}: shorten the prompt or max_tokens"
        )


class Completer(Protocol):
    """Anything that answers messages. Many calls may be under way at once."""

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response; equal messages, sampling and seed give an equal one."""
        ...
