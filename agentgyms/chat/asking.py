"""Asks models from ordinary code: many threads may wait at once, and equal requests are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgyms.chat.values import Answer, Message, Sampling, Service


@dataclass(frozen=True, slots=True)
class Model:
    """A model behind a server, and how it is asked.

    Attributes:
        name: At its server.
        url: Of the server.
        key_variable: Environment variable with the bearer token.
        sampling: How to sample.
        service: How the server is treated.
        cache: Keep answers on disk and take equal requests from there.
        cache_path: The file; None takes the one in the user's cache folder.
        price_prompt: Of a million prompt tokens, in whatever currency, or None.
        price_response: Of a million response tokens, or None.
        extra: Further fields of each request.
    """

    name: str
    url: str
    key_variable: str = "OPENAI_API_KEY"
    sampling: Sampling = Sampling()
    service: Service = Service()
    cache: bool = True
    cache_path: str | None = None
    price_prompt: float | None = None
    price_response: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def cost(self, answer: Answer) -> float:
        """Return what an answer costs; nan if the prices are not known."""
        raise NotImplementedError


def read_model(value: Any, what: str, sampling: Sampling) -> Model:
    """Return the model that an argument names.

    Args:
        value: `"name@http://host:8000/v1"`, or a mapping: `name`, `url` and any of
            `key_variable`, `temperature`, `top_p`, `max_tokens`, `timeout_s`, `retries`,
            `requests_per_minute`, `tokens_per_minute`, `cache`, `cache_path`, `price_prompt`,
            `price_response`, `extra`.
        what: The argument's name, for errors.
        sampling: Where the value says nothing.

    Raises:
        BadOption: It names none; the message says which part is wrong. Keys are never repeated.
    """
    raise NotImplementedError


class Asker:
    """Asks one model. Threads and forked processes may share it; equal models share one client.

    Raises:
        DependencyNotInstalled: The extra that brings the HTTP client is missing.
    """

    def __init__(self, model: Model) -> None:
        """Connect to nothing yet."""
        self.model = model

    def ask(self, messages: Sequence[Message], seed: int) -> Answer:
        """Return the answer; equal messages and seeds have equal ones while the cache is kept.

        Raises:
            ModelUnavailable: Every attempt failed (an `EnvUnavailable`: no verdict on the agent).
            BadOption: The server refuses the request and would refuse it again.
        """
        raise NotImplementedError

    def report(self) -> dict[str, Any]:
        """Return what the requests were like, JSON-plain: counts, retries, waits, cache hits."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the client back."""
