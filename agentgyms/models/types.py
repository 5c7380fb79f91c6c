"""Messages, sampling options, answers and names of settings of chat completions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NotRequired, TypedDict


class Message(TypedDict):
    """One message of a chat: role `system`, `user`, `assistant` or `tool`, and its content.

    The content is a text, or a list of the protocol's content parts, JSON-plain. `tool_calls` and
    `tool_call_id` are the protocol's. The first message has the `tools` of the request, if any.
    """

    role: str
    content: str | list[dict[str, Any]]
    tools: NotRequired[list[dict[str, Any]]]
    tool_calls: NotRequired[list[dict[str, Any]]]
    tool_call_id: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling options."""

    temperature: float = 1.0  # 0 means greedy decoding
    max_tokens: int = 512  # longest response
    top_p: float = 1.0  # nucleus sampling probability, in (0, 1]


@dataclass(frozen=True, slots=True)
class Service:
    """Timeouts, retries and rate limits for a server of models."""

    timeout_s: float = 120.0  # longest time without data
    retries: int = 5  # most of one request
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None  # of prompts and responses
    stream: bool = False


@dataclass(frozen=True, slots=True)
class ServedCall:
    """A tool call in an answer: the server's id, the tool's name, and the text of a JSON object."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer; token counts are 0 if unknown.

    `finished` is False at the token limit. `reasoning` are thoughts that the server separates from
    the response; `reasoning_tokens` of `response` are theirs, None if unknown.
    """

    text: str
    finished: bool = True
    prompt: int = 0
    response: int = 0
    reasoning: str = ""
    calls: tuple[ServedCall, ...] = ()
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SettingNames:
    """Names and advice in error messages; the first three are prefixes of names."""

    model: str = "the model's "  # name, url, key_variable, extra
    service: str = "the model's "  # timeout_s, retries, the limits per minute, stream
    sampling: str = "the model's "  # temperature, top_p, max_tokens
    seed: str = "the seed of the episode"
    later: str = "try again later"  # when the server is available again
    resume: str = "try again"  # when the account is in order again
    without_images: str = "send no images"  # if the model does not support them


SETTING_NAMES: Final = SettingNames()
"""For a model that one argument names: `agentgyms.models.model_config.read_model`."""
