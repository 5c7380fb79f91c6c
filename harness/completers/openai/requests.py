"""Requests for chat completions: messages and sampling as the fields of one."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from agentgyms.images import encode_png
from harness.completers import Content, Message, Sampling, images_of, texts_of
from harness.errors import ConfigError
from harness.images import Image

_SEED_BITS: Final = 31  # servers keep seeds as C integers
_CHARACTERS_PER_TOKEN: Final = 4
_TOKENS_PER_IMAGE: Final = 800

_SETTINGS: Final = {
    "model": "model.name",
    "temperature": "sampling.temperature",
    "top_p": "sampling.top_p",
    "max_tokens": "sampling.max_tokens",
    "max_completion_tokens": "sampling.max_tokens",
    "seed": "run.seeds",
    "stream": "service.stream",
}
"""Fields of a request that are set elsewhere."""

_FIXED: Final = ("messages", "n", "stream_options", "tools", "functions", "logprobs")


def json_of(
    model: str, messages: Sequence[Message], sampling: Sampling, seed: int, stream: bool
) -> dict[str, Any]:
    """Return the body of a request. Servers get the low 31 bits of the seed."""
    asked: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": message["role"], "content": _content(message["content"])}
            for message in messages
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


def checked_extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return further fields of a request.

    Raises:
        ConfigError: One of them is set elsewhere, or cannot be written as JSON.
    """
    for key in extra:
        if key in _SETTINGS:
            raise ConfigError(f"model.extra.{key} is set elsewhere: use {_SETTINGS[key]}")
        if key in _FIXED:
            raise ConfigError(f"model.extra.{key} cannot be set: an agent's answer is one text")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(extra), allow_nan=False))
    except (TypeError, ValueError) as e:
        raise ConfigError(f"model.extra cannot be written as JSON: {e}") from None
    return plain


def tokens_expected(messages: Sequence[Message], sampling: Sampling) -> float:
    """Return about how many tokens a request takes: rate limits count them before they are known.

    A token is taken for 4 characters, and the response for as long as it may be.
    """
    characters = sum(len(text) for text in texts_of(messages))
    images = len(images_of(messages)) * _TOKENS_PER_IMAGE
    return characters / _CHARACTERS_PER_TOKEN + images + sampling.max_tokens


def _content(content: Content) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image_url", "image_url": {"url": _address(part["image"])}}
        for part in content
    ]


@lru_cache(128)
def _address(image: Image) -> str:
    """Return an image as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(encode_png(image.pixels)).decode("ascii")
