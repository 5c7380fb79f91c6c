"""Builds the body of chat completion requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.models.types import SETTING_NAMES, Message, Sampling, SettingNames

_SEED_BITS: Final = 31  # servers keep seeds as C integers
_CHARACTERS_PER_TOKEN: Final = 4
_TOKENS_PER_IMAGE: Final = 800
_MESSAGE_FIELDS: Final = ("role", "content", "tool_calls", "tool_call_id")
_FIXED: Final = ("messages", "n", "stream_options", "tools", "functions", "logprobs")


def request_body(
    model: str, messages: Sequence[Message], sampling: Sampling, seed: int, stream: bool
) -> dict[str, Any]:
    """Return a request's JSON, with the low 31 bits of the seed; it asks for one call of a tool."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [
            {name: value for name, value in message.items() if name in _MESSAGE_FIELDS}
            for message in messages
        ],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": seed & ((1 << _SEED_BITS) - 1),
        "n": 1,
    }
    if tools := tools_of(messages):
        body |= {"tools": tools, "parallel_tool_calls": False}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def tools_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the tools that a chat offers; [] for none."""
    return messages[0].get("tools", []) if messages else []


def check_extra(extra: Mapping[str, Any], names: SettingNames = SETTING_NAMES) -> dict[str, Any]:
    """Return extra fields of requests; `BadOption` if one is set elsewhere or is no JSON."""
    settings = {
        "model": f"{names.model}name",
        "temperature": f"{names.sampling}temperature",
        "top_p": f"{names.sampling}top_p",
        "max_tokens": f"{names.sampling}max_tokens",
        "max_completion_tokens": f"{names.sampling}max_tokens",
        "seed": names.seed,
        "stream": f"{names.service}stream",
    }
    for key in extra:
        if key in settings:
            raise BadOption(f"{names.model}extra.{key} is set elsewhere: use {settings[key]}")
        if key in _FIXED:
            raise BadOption(f"{names.model}extra.{key} cannot be set: an answer is one text")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(extra), allow_nan=False))
    except (TypeError, ValueError) as e:
        raise BadOption(f"{names.model}extra cannot be written as JSON: {e}") from None
    return plain


def estimate_tokens(messages: Sequence[Message], sampling: Sampling) -> float:
    """Estimate a request's tokens: 4 characters each, and the longest response."""
    texts: list[str] = []
    for message in messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        texts += [part["text"] for part in parts if "text" in part]
    characters = sum(len(text) for text in texts)
    characters += len(json.dumps(tools_of(messages)))
    images = count_images(messages) * _TOKENS_PER_IMAGE
    return characters / _CHARACTERS_PER_TOKEN + images + sampling.max_tokens


def count_images(messages: Sequence[Message]) -> int:
    """Return the number of images in the messages."""
    return sum(
        part["type"] == "image_url"
        for message in messages
        if not isinstance(message["content"], str)
        for part in message["content"]
    )
