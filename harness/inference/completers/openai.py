"""A completer for servers with OpenAI's chat completions API."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from agentgyms.core import errors
from agentgyms.core.images import encode_png
from agentgyms.models import types
from agentgyms.models.cache import PNG_ADDRESS, CachedClient
from agentgyms.models.client import ChatClient
from agentgyms.models.types import SettingNames
from harness.config import ServiceConfig
from harness.inference.completers import Sampling
from harness.types.errors import ConfigError, ContextOverflow, ModelUnavailable
from harness.types.messages import (
    Content,
    Image,
    Message,
    content_text,
    images_of,
    tools_of,
)
from harness.types.rollout import Completion, Usage

_TERMS: Final = SettingNames(
    model="model.",
    service="service.",
    sampling="sampling.",
    seed="run.seeds",
    later="run the evaluation again later",
    resume="run the evaluation again to resume",
    without_images="play an environment that observes in words",
)


class OpenAICompleter:
    """Answers with a model at `POST {url}/chat/completions`.

    `agentgyms.models.client.ChatClient` retries when a server fails. `service` has time limits,
    retries, rate limits, and the path of the answer cache. Raises `ConfigError` if an argument is
    out of range.
    """

    def __init__(
        self,
        model: str,
        url: str,  # the server's address, with or without `/v1`
        key: str | None = None,  # bearer token, or None; it is not written to any file
        service: ServiceConfig = ServiceConfig(),  # noqa: B008 - frozen
        extra: Mapping[str, Any] | None = None,
        *,
        cached: bool = False,  # keep answers on disk and answer equal requests from there
        # Longest pause after the first failed attempt; it doubles with each further attempt, up to
        # a minute.
        first_pause_s: float = 0.5,
    ) -> None:
        settings = types.Service(
            service.timeout_s,
            service.retries,
            service.requests_per_minute,
            service.tokens_per_minute,
            service.stream,
        )
        with _harness_errors():
            self._server = ChatClient(
                model, url, key, settings, extra, first_pause_s=first_pause_s, names=_TERMS
            )
        self._client = CachedClient(self._server, service.cache_path) if cached else self._server

    async def check(self) -> None:
        """Check that the server has the model, so that a wrong setting fails before any episode.

        If the server has no list of models, or the model is not on it, a short request decides.
        Raises `ModelUnavailable` if the server does not answer, `ConfigError` if it refuses the key
        or the model.
        """
        with _harness_errors():
            await self._server.check()

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`; without token ids and log-probabilities.

        Raises `ContextOverflow` if prompt and longest response do not fit into the model's context.
        Raises `ConfigError` if the server refuses the request, so that a retry would not help, or
        thoughts have a limit. Raises `ModelUnavailable` if every attempt failed.
        """
        refuse_thought_limit(sampling.max_thought_tokens)
        with _harness_errors():
            sent = [_api_message(message) for message in messages]
            answer = await self._client.complete(sent, sampling, seed)
        shown, usage = images_of(messages), Usage(answer.prompt, answer.response, 1)
        return Completion(
            _with_thoughts(answer) + _written(answer.calls),
            finished=answer.finished,
            images=shown,
            usage=usage,
            calls=answer.calls if tools_of(messages) else None,
            thought_tokens=answer.reasoning_tokens,
        )

    async def close(self) -> None:
        """Close all connections, and the answer cache."""
        await self._client.close()

    def identity(self) -> dict[str, Any]:
        """Return the model's identity, without the address; `check` adds `root`, if reported."""
        return self._server.identity()

    def scope(self) -> dict[str, Any]:
        """Return the settings that change an answer, besides messages, sampling and seed."""
        return self._server.scope()

    def report(self) -> dict[str, Any]:
        """Return statistics of the requests, JSON-plain: counts, waits, model names in answers.

        If `seed` is one of the `refused_fields`, equal requests may get different answers.
        """
        return self._client.report()


def refuse_observation_limit(most: int | None) -> None:
    """Raise `ConfigError` for a limit of observations in tokens: a server's are not known here."""
    if most is not None:
        raise ConfigError(
            f"agent.max_observation = {most} counts tokens and needs a model in this process "
            "(model.backend 'hf' or 'vllm'): leave it out"
        )


def refuse_thought_limit(most: int | None) -> None:
    """Raise `ConfigError` for a limit of thoughts: the protocol knows none."""
    if most is not None:
        raise ConfigError(
            f"agent.max_thought_tokens = {most} needs a model in this process (model.backend 'hf' "
            "or 'vllm'): leave it out, and give a server its own field in model.extra, such as "
            '{ thinking_token_budget = 512 } or { reasoning_effort = "low" }'
        )


def _with_thoughts(answer: types.Answer) -> str:
    """Return an answer with its thoughts in `<think>`, as the model wrote them.

    The opening tag is missing in the text if the chat template has put it into the prompt.
    """
    text = answer.text
    if answer.reasoning:
        closing = "\n</think>\n\n" if text or answer.finished else ""
        return f"<think>\n{answer.reasoning}{closing}{text}"
    before, closed, _ = text.partition("</think>")
    return f"<think>{text}" if closed and "<think>" not in before else text


@contextmanager
def _harness_errors() -> Iterator[None]:
    try:
        yield
    except errors.PromptTooLong as e:
        raise ContextOverflow(str(e)) from None
    except errors.BadOption as e:
        raise ConfigError(str(e)) from None
    except errors.ModelUnavailable as e:
        raise ModelUnavailable(str(e)) from None


def _written(calls: Sequence[types.ServedCall]) -> str:
    """Return calls as the text of an answer has them, for recordings."""
    return "".join(
        f'\n<tool_call>\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}\n'
        "</tool_call>"
        for call in calls
    )


def _api_message(message: Message) -> types.Message:
    sent: types.Message = {"role": message["role"], "content": _content(message["content"])}
    if "tools" in message:
        sent["tools"] = message["tools"]
    if "call_id" in message:
        sent["tool_call_id"] = message["call_id"]
    if "calls" in message:
        calls, text = message["calls"], content_text(message["content"])
        sent["content"] = text.removesuffix(_written(calls))
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
    return sent


def _content(content: Content) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image_url", "image_url": {"url": _data_url(part["image"])}}
        for part in content
    ]


@lru_cache(128)
def _data_url(image: Image) -> str:
    return f"{PNG_ADDRESS}," + base64.b64encode(encode_png(image.pixels)).decode("ascii")
