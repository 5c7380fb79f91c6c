"""What is asked and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict


class Message(TypedDict):
    """One message of a chat as it travels: role `system`, `user` or `assistant`, and its content.

    The content is a text, or the parts that the protocol knows, JSON-plain.
    """

    role: str
    content: str | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample.

    Attributes:
        temperature: 0 takes the most likely token.
        max_tokens: Longest response in tokens.
        top_p: Only the most likely tokens that have this share together are drawn, in (0, 1].
    """

    temperature: float = 1.0
    max_tokens: int = 512
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class Service:
    """How a server of models is treated.

    Attributes:
        timeout_s: Longest silence.
        retries: How often a request that failed is sent again.
        requests_per_minute: Most requests, or None.
        tokens_per_minute: Most tokens of prompts and responses, or None.
        stream: Ask for the answer in pieces.
    """

    timeout_s: float = 120.0
    retries: int = 5
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered.

    Attributes:
        text: The response.
        finished: The model ended its turn itself; False if it ran into the token limit.
        prompt: Tokens of the prompt, 0 where the server does not tell.
        response: Tokens of the response, 0 where the server does not tell.
    """

    text: str
    finished: bool = True
    prompt: int = 0
    response: int = 0
