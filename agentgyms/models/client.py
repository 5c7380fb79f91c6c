"""The asynchronous client of a server of chat completions: retries, rate limits, clear errors.

No error becomes an answer: temporary ones end as `ModelUnavailable`, permanent ones raise
`BadOption` at once. Rejected fields are omitted, and `max_tokens` is renamed, from then on if this
changes no answer (`error_replies.optional_fields`).
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx2

from agentgyms.core import tracing
from agentgyms.core.errors import BadOption, ModelUnavailable, PromptTooLong
from agentgyms.models.endpoint import base_url, check_key, proxied
from agentgyms.models.error_replies import (
    RequestRejected,
    advice,
    classify_error,
    get_typed,
    optional_fields,
    redact,
    rejected_field,
)
from agentgyms.models.rate_limit import Attempt, RateLimiter, RequestStats, RetryableError, pause_s
from agentgyms.models.replies import Reply, parse_json, read_body, read_reply
from agentgyms.models.requests import check_extra, count_images, estimate_tokens, request_body
from agentgyms.models.types import SETTING_NAMES, Answer, Message, Sampling, Service, SettingNames

_log = logging.getLogger(__name__)

_CONNECT_S: Final = 10.0
_IDLE_S: Final = 3.0  # shorter than servers keep idle connections
_MAX_EMPTY_ANSWERS: Final = 5
"""An empty answer is accepted after this many in a row: a failing server may send one."""
_CHECK_RETRIES: Final = 2
_CHECK_TOKENS: Final = 16
_LONGEST_LIST: Final = 2**24  # bytes


class ChatClient:
    """Sends requests to `POST {url}/chat/completions`, many at a time in one event loop.

    A status 429 or a `Retry-After` pauses all of them, and after a 429 the request rate is lower
    for a while. A 429 while others are answered is no failed attempt: the request is queued again.
    An empty answer is retried a few times before it is accepted.

    `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are obeyed, except for servers on this machine. The
    key is never written to files or logs. The first pause is at most `first_pause_s`; it doubles
    with each failure, up to a minute. Raises `BadOption` for an invalid argument.
    """

    def __init__(
        self,
        model: str,
        url: str,
        key: str | None = None,
        service: Service = Service(),  # noqa: B008 - frozen
        extra: Mapping[str, Any] | None = None,
        *,
        first_pause_s: float = 0.5,
        names: SettingNames = SETTING_NAMES,
    ) -> None:
        if not model:
            raise BadOption(f"{names.model}name is empty: expected the model's name at its server")
        if service.timeout_s <= 0 or service.retries < 0:
            raise BadOption(
                f"{names.service}timeout_s must be greater than 0 and {names.service}retries at "
                f"least 0, got {service.timeout_s:g} and {service.retries}"
            )
        self.model, self._url = model, base_url(url, names)
        self._key, self._service, self._names = check_key(key, names), service, names
        self._extra, self._first_pause_s = check_extra(extra or {}, names), first_pause_s
        self._limiter = RateLimiter(service.requests_per_minute, service.tokens_per_minute, names)
        self._refused: set[str] = set()
        self._models_by_name: dict[str, dict[str, Any]] = {}
        self._has_answered = False
        self.stats = RequestStats()
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self._key}"} if self._key else {}
        proxies = proxied(self._url)
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(
                service.timeout_s, connect=min(_CONNECT_S, service.timeout_s), pool=None
            ),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_S),
            trust_env=proxies,
            # Reading the certificates takes 0.2 s, and a request without TLS needs none.
            verify=proxies or not self._url.startswith("http:"),
        )

    async def check(self) -> None:
        """Check address, key and model, by the list of models or by a short request.

        Raises `ModelUnavailable` if no server answers, `BadOption` if it rejects the key or the
        model.
        """
        self._models_by_name = await self._models()
        if (
            self.model not in self._models_by_name
            and f"models/{self.model}" not in self._models_by_name
        ):
            sampling = Sampling(temperature=1.0, max_tokens=_CHECK_TOKENS)
            await self.complete([{"role": "user", "content": "Say yes."}], sampling, 0)

    async def complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        """Return the answer to `messages`; empty and unfinished if a content filter blocks them.

        Raises `PromptTooLong`, `BadOption` if the request is rejected, `ModelUnavailable` if every
        attempt failed.
        """
        with tracing.chat(self.model, "openai", sampling, seed, self._url) as span:
            answer = await self._complete(messages, sampling, seed)
            span.answered(answer.prompt, answer.response, finished=answer.finished)
            return answer

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    def identity(self) -> dict[str, Any]:
        """Return the model's identity, independent of the server's address.

        After `check` it has `root` if the server reports what is loaded under the model's name.
        """
        root = get_typed(self._models_by_name.get(self.model, {}), "root", str)
        loaded = {"root": root} if root and root != self.model else {}
        return {"backend": "openai", "name": self.model} | loaded

    def scope(self) -> dict[str, Any]:
        """Return what an answer depends on besides messages, sampling and seed, JSON-plain."""
        return self.identity() | {"url": self._url, "extra": self._extra}

    def report(self) -> dict[str, Any]:
        """Return statistics of the requests, JSON-plain: counts, waits, names in answers.

        With `seed` in `refused_fields`, equal requests may have different answers.
        """
        waits = {"waited_s": round(self._limiter.waited_s, 3)}
        return self.stats.report() | waits | {"refused_fields": sorted(self._refused)}

    async def _complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        try:
            return await self._answer(messages, sampling, seed)
        except RequestRejected as refused:
            if refused.too_long:
                raise PromptTooLong(f"{self.model}: {self._redact(refused.message)}") from None
            if not refused.filtered:
                raise BadOption(self._rejection_message(refused, count_images(messages))) from None
            return Answer("", finished=False)

    async def _answer(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        attempt = failed = num_empty = 0
        answered = self.stats.answers
        while True:
            body = request_body(self.model, messages, sampling, seed, self._service.stream)
            spare = self._refused & {*optional_fields(body), "max_tokens"}
            adapted = {key: value for key, value in body.items() if key not in spare}
            if "max_tokens" in spare:
                adapted["max_completion_tokens"] = body["max_tokens"]
            body = adapted | self._extra
            attempt += 1
            try:
                reply = await self._attempt(body, estimate_tokens(messages, sampling), sampling)
                num_empty += reply.is_empty
                if not reply.is_empty or num_empty == _MAX_EMPTY_ANSWERS:
                    return reply.answer
                self.stats.retries["empty answer"] += 1
            except RequestRejected as refused:
                field = rejected_field(refused, body)
                if field is None:
                    raise
                self._refused.add(field)
                attempt -= 1
            except RetryableError as fault:
                self.stats.retries[fault.cause] += 1
                others_go_on, answered = self.stats.answers > answered, self.stats.answers
                failed += not (fault.status == 429 and others_go_on)
                if failed > self._service.retries:
                    raise ModelUnavailable(self._failure_message(fault, attempt)) from None
                # Answers to others show that the server is not worse off than before.
                await self._pause(pause_s(fault, max(failed, 1), seed, self._first_pause_s), fault)

    async def _pause(self, seconds: float, fault: RetryableError) -> None:
        _log.info("%s: %s; again in %.1f s", self.model, self._redact(fault.message), seconds)
        if fault.status == 429 or fault.retry_after_s is not None:
            self._limiter.pause(seconds)
            return
        self.stats.paused_s += seconds
        await asyncio.sleep(seconds)

    async def _attempt(self, body: dict[str, Any], expected: float, sampling: Sampling) -> Reply:
        sent = await self._limiter.acquire(expected)
        self.stats.requests += 1
        url, content = f"{self._url}/chat/completions", json.dumps(body)
        try:
            async with (
                Attempt(self._service.timeout_s, has_answered=self._has_answered),
                self._client.stream("POST", url, content=content) as response,
            ):
                self._has_answered = True
                reply = await read_reply(response, sampling.max_tokens)
        except RetryableError as fault:
            if fault.status == 429:
                self._limiter.slow_down(sent)
            raise
        self._limiter.speed_up()
        self.stats.answers += 1
        self.stats.served |= {reply.model} - {""}
        self.stats.fingerprints |= {reply.fingerprint} - {""}
        used = reply.answer.prompt + reply.answer.response
        if used:
            self._limiter.correct(used - expected)
        return reply

    async def _models(self) -> dict[str, dict[str, Any]]:
        """Return the server's models by name; empty if it has no list."""
        attempt = 0
        while True:
            attempt += 1
            try:
                async with (
                    Attempt(self._service.timeout_s, has_answered=self._has_answered),
                    self._client.stream("GET", f"{self._url}/models") as response,
                ):
                    self._has_answered = True
                    reply = parse_json(await read_body(response, _LONGEST_LIST))
                break
            except RetryableError as fault:
                if attempt > min(self._service.retries, _CHECK_RETRIES):
                    raise ModelUnavailable(
                        f"no server of models answers at {self._url} "
                        f"({self._redact(fault.message)}): "
                        f"check that it runs and that {self._names.model}url is right"
                    ) from None
                await self._pause(pause_s(fault, attempt, 0, self._first_pause_s), fault)
        if response.status_code in (401, 403):
            refused = classify_error(response.status_code, reply, response.headers)
            assert isinstance(refused, RequestRejected)
            raise BadOption(self._rejection_message(refused))
        rows = get_typed(reply, "data", list) if isinstance(reply, dict) else None
        return {
            row["id"]: row
            for row in rows or []
            if isinstance(row, dict) and isinstance(row.get("id"), str)
        }

    def _rejection_message(self, refused: RequestRejected, images: int = 0) -> str:
        near = difflib.get_close_matches(self.model, self._models_by_name, n=3, cutoff=0.3)
        names = ", ".join(near or list(self._models_by_name)[:8])
        known = f"; it knows {names}" if names else ""
        text = f"status {refused.status}: {refused.message}" if refused.status else refused.message
        return (
            f"the server at {self._url} refuses a request to {self.model!r} "
            f"({self._redact(text)}): {self._redact(advice(refused, known, images, self._names))}"
        )

    def _failure_message(self, fault: RetryableError, attempts: int) -> str:
        times = f"{attempts} attempt{'s' * (attempts > 1)}"
        text = self._redact(fault.message)
        return f"no answer from {self.model!r} at {self._url} after {times}; the last one: {text}"

    def _redact(self, message: str) -> str:
        return redact(message, self._key)
