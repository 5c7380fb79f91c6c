"""Models behind any server that speaks OpenAI's chat completions, as completers."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from agentgyms import errors
from agentgyms.chat import values
from agentgyms.chat.cache import PNG_ADDRESS, CachedClient
from agentgyms.chat.client import ChatClient
from agentgyms.chat.terms import Terms
from agentgyms.images import encode_png
from harness.completers import Content, Message, Sampling, images_of
from harness.errors import ConfigError, ContextOverflow, ModelUnavailable
from harness.evaluation.config import ServiceConfig
from harness.images import Image
from harness.rollout import Completion, Usage

_TERMS: Final = Terms(
    model="model.",
    service="service.",
    sampling="sampling.",
    seed="run.seeds",
    later="run the evaluation again later",
    resume="run the evaluation again to resume",
    blind="play an environment that is told in words",
)


class OpenAICompleter:
    """Answers with a model behind `POST {url}/chat/completions`.

    See `agentgyms.chat.client.ChatClient` for what it does about servers that fail.

    Args:
        model: Its name at the server.
        url: Of the server, with or without `/v1`.
        key: Bearer token, or None; it is written nowhere.
        service: Time limits, retries, rate limits, and where answers are kept.
        extra: Further fields of each request.
        cached: Keep answers on disk and take equal requests from there.
        first_pause_s: Longest pause after a first failed attempt; it doubles with every further
            one, up to a minute.

    Raises:
        ConfigError: An argument has a value it cannot have.
    """

    def __init__(
        self,
        model: str,
        url: str,
        key: str | None = None,
        service: ServiceConfig = ServiceConfig(),  # noqa: B008 - frozen
        extra: Mapping[str, Any] | None = None,
        *,
        cached: bool = False,
        first_pause_s: float = 0.5,
    ) -> None:
        treated = values.Service(
            service.timeout_s,
            service.retries,
            service.requests_per_minute,
            service.tokens_per_minute,
            service.stream,
        )
        with _our_errors():
            self._server = ChatClient(
                model, url, key, treated, extra, first_pause_s=first_pause_s, terms=_TERMS
            )
        self._client = CachedClient(self._server, service.cache_path) if cached else self._server

    async def check(self) -> None:
        """Ask the server for its models, so that a wrong address or name fails before any episode.

        Where the server keeps no list, or the model is not on it, a short request decides.

        Raises:
            ModelUnavailable: Nothing answers there.
            ConfigError: The server refuses the key or the model; the message names others.
        """
        with _our_errors():
            await self._server.check()

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`; its tokens and their log-probabilities are unknown.

        Raises:
            ContextOverflow: The prompt and its longest response do not fit.
            ConfigError: The server does not take the request and would not take it again.
            ModelUnavailable: Every attempt failed.
        """
        with _our_errors():
            answer = await self._client.complete(_plain(messages), sampling, seed)
        shown, usage = images_of(messages), Usage(answer.prompt, answer.response, 1)
        return Completion(answer.text, finished=answer.finished, images=shown, usage=usage)

    async def close(self) -> None:
        """Close all connections, and the file of answers."""
        await self._client.close()

    def identity(self) -> dict[str, Any]:
        """Return which model this is: equal for equal models, wherever their server is.

        `root` is there after `check` if the server tells what it loaded under the model's name.
        """
        return self._server.identity()

    def scope(self) -> dict[str, Any]:
        """Return what an answer depends on besides messages, sampling and seed, JSON-plain."""
        return self._server.scope()

    def report(self) -> dict[str, Any]:
        """Return what the run of requests was like, JSON-plain: counts, waits, names in answers.

        `refused_fields` are those that the server does not take; without `seed`, equal requests may
        have unequal answers.
        """
        return self._client.report()


@contextmanager
def _our_errors() -> Iterator[None]:
    """Raise the harness's errors, which speak of configurations, for those of environments."""
    try:
        yield
    except errors.PromptTooLong as e:
        raise ContextOverflow(str(e)) from None
    except errors.BadOption as e:
        raise ConfigError(str(e)) from None
    except errors.ModelUnavailable as e:
        raise ModelUnavailable(str(e)) from None


def _plain(messages: Sequence[Message]) -> list[values.Message]:
    """Return the messages as they travel."""
    return [
        {"role": message["role"], "content": _content(message["content"])} for message in messages
    ]


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
    return f"{PNG_ADDRESS}," + base64.b64encode(encode_png(image.pixels)).decode("ascii")
