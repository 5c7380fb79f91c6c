"""Requests for chat completions: messages and sampling as the fields of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentgyms.chat.terms import TERMS, Terms
from agentgyms.chat.values import Message, Sampling
from agentgyms.errors import BadOption

_SEED_BITS: Final = 31  # servers keep seeds as C integers
_CHARACTERS_PER_TOKEN: Final = 4
_TOKENS_PER_IMAGE: Final = 800
_FIXED: Final = ("messages", "n", "stream_options", "tools", "functions", "logprobs")


def json_of(
    model: str, messages: Sequence[Message], sampling: Sampling, seed: int, stream: bool
) -> dict[str, Any]:
    """Return the body of a request. Servers get the low 31 bits of the seed."""
    asked: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": message["role"], "content": message["content"]} for message in messages
        ],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": seed & ((1 << _SEED_BITS) - 1),
        "n": 1,
    }
    if stream:
        asked |= {"stream": True, "stream_options": {"include_usage": True}}
    return asked


def checked_extra(extra: Mapping[str, Any], terms: Terms = TERMS) -> dict[str, Any]:
    """Return further fields of a request.

    Raises:
        BadOption: One of them is set elsewhere, or cannot be written as JSON.
    """
    settings = _settings(terms)
    for key in extra:
        if key in settings:
            raise BadOption(f"{terms.model}extra.{key} is set elsewhere: use {settings[key]}")
        if key in _FIXED:
            raise BadOption(f"{terms.model}extra.{key} cannot be set: an answer is one text")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(extra), allow_nan=False))
    except (TypeError, ValueError) as e:
        raise BadOption(f"{terms.model}extra cannot be written as JSON: {e}") from None
    return plain


def tokens_expected(messages: Sequence[Message], sampling: Sampling) -> float:
    """Return about how many tokens a request takes: rate limits count them before they are known.

    A token is taken for 4 characters, and the response for as long as it may be.
    """
    characters = sum(len(text) for text in _texts(messages))
    images = count_images(messages) * _TOKENS_PER_IMAGE
    return characters / _CHARACTERS_PER_TOKEN + images + sampling.max_tokens


def count_images(messages: Sequence[Message]) -> int:
    """Return how many images the messages show."""
    return sum(
        part["type"] == "image_url"
        for message in messages
        if not isinstance(message["content"], str)
        for part in message["content"]
    )


def _texts(messages: Sequence[Message]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        texts += [part["text"] for part in parts if "text" in part]
    return texts


def _settings(terms: Terms) -> dict[str, str]:
    """Return the fields of a request that are set elsewhere, and where."""
    return {
        "model": f"{terms.model}name",
        "temperature": f"{terms.sampling}temperature",
        "top_p": f"{terms.sampling}top_p",
        "max_tokens": f"{terms.sampling}max_tokens",
        "max_completion_tokens": f"{terms.sampling}max_tokens",
        "seed": terms.seed,
        "stream": f"{terms.service}stream",
    }
