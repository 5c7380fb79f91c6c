"""Scores tokens by a model behind a server of OpenAI's completions protocol, at temperature 1.

The server must take a prompt of token ids and echo it with the log-probability of each token, as
`vllm serve MODEL` does.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from agentgyms.core.errors import ServerUnavailable
from agentgyms.models.endpoint import base_url, check_key
from agentgyms.models.error_replies import RequestRejected, redact
from agentgyms.models.json_client import JsonPoster, exchange
from agentgyms.models.model_config import Model
from agentgyms.models.rate_limit import RateLimiter, RetryableError, pause_s
from harness.model.packing import Sample
from harness.model.tokenizer import ChatTokenizer
from harness.types.arrays import Floats
from harness.types.errors import ConfigError, ModelUnavailable

_CONCURRENT: Final = 16
"""Most unfinished requests."""
_FIRST_PAUSE_S: Final = 0.5
_LIST_S: Final = 30.0
_BYTES_PER_TOKEN: Final = 1024
_PROBE: Final = "Open drawer 12, then put 3 clean plates on the shelf."
_ANY_TOKENS: Final = (1, 2, 3)

_Scored = tuple[list[str], list[float]]
"""Texts of a prompt's tokens, and their log-probabilities; that of the first one is 0."""


class ScoringServer:
    """Scores tokens by a model on a server; its sampling options, prices and cache are not used.

    `max_length` is the longest sequence in tokens, known after `check` if the server reports it.
    """

    def __init__(self, model: Model) -> None:
        """Connect to nothing yet. Raises `BadOption` if the address or the key cannot be used."""
        self._model, self._url = model, base_url(model.url)
        self._key = check_key(os.environ.get(model.key_variable))
        self._headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self.max_length: int | None = None

    def check(self, tokenizer: ChatTokenizer | None = None) -> None:
        """Score a short text with the policy's `tokenizer`, so that errors show before a run.

        Raises `ModelUnavailable` if the server does not answer, and `ConfigError` if it lacks the
        model, has other tokens or gives no log-probabilities of prompts.
        """
        self._read_list()
        ids = tokenizer.encode(_PROBE) if tokenizer else _ANY_TOKENS
        ((texts, _),) = asyncio.run(self._scored([ids]))
        if tokenizer and _without_blanks("".join(texts)) != _without_blanks(tokenizer.decode(ids)):
            raise ConfigError(
                f"{self._who} has other tokens than the policy, whose responses it scores: it "
                f"reads {tokenizer.decode(ids)!r} as {''.join(texts)!r:.80}; expected a model with "
                "the same tokenizer"
            )

    def score(self, rows: Sequence[Sample]) -> list[Floats]:
        """Return the log-probability of each sample's action tokens, shapes [L].

        Equal samples are sent once. Raises `ModelUnavailable` if a request failed after all
        retries, and `ConfigError` if the server refuses one or gives no log-probabilities.
        """
        ids = [row.prompt_ids + row.response_ids for row in rows]
        distinct = list(dict.fromkeys(ids))
        scored = dict(zip(distinct, asyncio.run(self._scored(distinct)), strict=True))
        return [_action_logprobs(row, scored[own][1]) for row, own in zip(rows, ids, strict=True)]

    @property
    def _who(self) -> str:
        return f"the model {self._model.name} at {self._url}"

    def _read_list(self) -> None:
        try:
            status, text = exchange(
                "GET", f"{self._url}/models", headers=self._headers, timeout_s=_LIST_S
            )
        except ServerUnavailable as e:
            raise ModelUnavailable(f"{self._who} does not answer: {e}") from e
        try:
            listed = {one["id"]: one for one in json.loads(text)["data"]} if status < 400 else {}
        except (ValueError, KeyError, TypeError):
            return
        if listed and self._model.name not in listed:
            known = ", ".join(map(str, listed))
            raise ConfigError(f"{self._who} is unknown there: the server has {known:.200}")
        longest = listed.get(self._model.name, {}).get("max_model_len")
        self.max_length = longest - 1 if isinstance(longest, int) else None  # it generates a token

    async def _scored(self, prompts: Sequence[tuple[int, ...]]) -> list[_Scored]:
        service, slots = self._model.service, asyncio.Semaphore(_CONCURRENT)
        limiter = RateLimiter(service.requests_per_minute, service.tokens_per_minute)
        poster = JsonPoster(self._url, self._headers, service.timeout_s)

        async def one(ids: tuple[int, ...]) -> _Scored:
            async with slots:
                return self._read(ids, await self._answer(poster, limiter, ids))

        try:
            return await asyncio.gather(*(one(ids) for ids in prompts))
        finally:
            await poster.close()

    async def _answer(self, poster: JsonPoster, limiter: RateLimiter, ids: tuple[int, ...]) -> Any:
        """Return the answer to one request, which is repeated after temporary errors."""
        options = {"max_tokens": 1, "temperature": 1.0, "echo": True, "logprobs": 1}
        body = {"model": self._model.name, "prompt": list(ids), **options, **self._model.extra}
        attempt = 0
        while True:
            attempt += 1
            sent = await limiter.acquire(len(ids))
            try:
                answer = await poster.post(
                    "/completions", body, 2**20 + _BYTES_PER_TOKEN * len(ids)
                )
            except RequestRejected as refused:
                raise ConfigError(
                    f"{self._who} refuses to score {len(ids)} tokens (status {refused.status}: "
                    f"{redact(refused.message, self._key)}): the server must take token ids at "
                    "/completions with echo and logprobs, as `vllm serve` does"
                ) from None
            except RetryableError as fault:
                if attempt > self._model.service.retries:
                    reason = redact(fault.message, self._key)
                    raise ModelUnavailable(
                        f"{self._who} gave no answer in {attempt} attempts: {reason}"
                    ) from None
                if fault.status == 429:
                    limiter.slow_down(sent)
                await asyncio.sleep(pause_s(fault, attempt, len(ids), _FIRST_PAUSE_S))
            else:
                limiter.speed_up()
                return answer

    def _read(self, ids: tuple[int, ...], answer: Any) -> _Scored:
        try:
            scored_prompt = answer["choices"][0]["logprobs"]
            texts, logprobs = (
                scored_prompt["tokens"][: len(ids)],
                scored_prompt["token_logprobs"][: len(ids)],
            )
            found = [0.0, *map(float, logprobs[1:])]
        except (KeyError, IndexError, TypeError, ValueError):
            found = []
        if len(found) != len(ids):
            raise ConfigError(
                f"{self._who} gives no log-probabilities of prompts: its server must answer "
                "/completions with echo and logprobs, as `vllm serve` does"
            )
        return texts, found


def _action_logprobs(row: Sample, logprobs: Sequence[float]) -> Floats:
    own = np.asarray(logprobs[len(row.prompt_ids) :], dtype=np.float64)
    return own[np.asarray(row.turn) >= 0] if row.turn else own


def _without_blanks(text: str) -> str:
    """Return a text without white space, which some tokenizers drop in front of single tokens."""
    return "".join(text.split())
