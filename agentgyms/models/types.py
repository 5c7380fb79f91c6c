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
    """Sampling options.

    Attributes:
        temperature: 0 means greedy decoding.
        max_tokens: Maximum length of the response in tokens.
        top_p: Nucleus sampling probability, in (0, 1].
    """

    temperature: float = 1.0
    max_tokens: int = 512
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class Service:
    """Timeouts, retries and rate limits for a server of models.

    Attributes:
        timeout_s: Maximum time without data.
        retries: Maximum number of retries of a request.
        requests_per_minute: Maximum requests, or None.
        tokens_per_minute: Maximum tokens of prompts and responses, or None.
        stream: Whether answers are streamed.
    """

    timeout_s: float = 120.0
    retries: int = 5
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
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

    `finished` is False if it reached the token limit. `reasoning` are the thoughts, where the
    server separates them from the response; `reasoning_tokens` of `response` are theirs, None if
    unknown.
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
    """Names and advice in error messages.

    Attributes:
        model: Prefix of `name`, `url`, `key_variable` and `extra`.
        service: Prefix of `timeout_s`, `retries`, `requests_per_minute`, `tokens_per_minute` and
            `stream`.
        sampling: Prefix of `temperature`, `top_p` and `max_tokens`.
        seed: Name of the setting that seeds come from.
        later: Advice for when the server is available again.
        resume: Advice for when the account is in order again.
        without_images: Advice, besides another model, if the model does not support images.
    """

    model: str = "the model's "
    service: str = "the model's "
    sampling: str = "the model's "
    seed: str = "the seed of the episode"
    later: str = "try again later"
    resume: str = "try again"
    without_images: str = "send no images"


SETTING_NAMES: Final = SettingNames()
"""For a model that one argument names: `agentgyms.models.model_config.read_model`."""
