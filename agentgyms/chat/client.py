"""Asks a model behind a server: tries again what may pass, raises what stays, invents nothing.

Nothing that goes wrong on the way becomes an answer. What may pass is tried again, and what stays
raises `ModelUnavailable`; what trying again cannot mend raises `BadOption` at once.

Parameters that a server does not take are left out after its first refusal, where that changes no
answer: see `agentgyms.chat.refusals.spare_fields`. `max_tokens` is then called
`max_completion_tokens`.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx2

from agentgyms.chat.endpoint import base_of, checked_key, is_loopback
from agentgyms.chat.refusals import (
    Refused,
    advice,
    judge,
    refused_field,
    shown,
    spare_fields,
    valued,
)
from agentgyms.chat.replies import Reply, parsed, read_body, read_reply
from agentgyms.chat.requests import checked_extra, count_images, json_of, tokens_expected
from agentgyms.chat.service import Attempt, Fault, Gate, Tally, pause_s
from agentgyms.chat.terms import TERMS, Terms
from agentgyms.chat.values import Answer, Message, Sampling, Service
from agentgyms.errors import BadOption, ModelUnavailable, PromptTooLong

_log = logging.getLogger(__name__)

_CONNECT_S: Final = 10.0
_IDLE_S: Final = 3.0  # less than servers keep a connection that nobody uses
_BELIEVED: Final = 5
"""So many times a model has to end its turn at once: a server that fails looks like it for once."""
_CHECK_RETRIES: Final = 2
_CHECK_TOKENS: Final = 16
_LONGEST_LIST: Final = 2**24  # bytes


class ChatClient:
    """Answers with a model behind `POST {url}/chat/completions`.

    Many requests may be under way at once, all in one event loop; they can be cancelled. A status
    429, or a `Retry-After`, makes all of them wait, and after a 429 they go slower for a while. A
    request that is refused with 429 while others are answered is not counted as failed: it waits
    for its turn. A model that ends its turn at once is asked again, and believed when it stays so.

    `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are obeyed, except for servers on this machine.

    Args:
        model: Its name at the server.
        url: Of the server, with or without `/v1`.
        key: Bearer token, or None; it is written nowhere.
        service: Time limits, retries and rate limits.
        extra: Further fields of each request.
        first_pause_s: Longest pause after a first failed attempt; it doubles with every further
            one, up to a minute.
        terms: What settings are called in errors.

    Attributes:
        tally: Counts of requests and retries.

    Raises:
        BadOption: An argument has a value it cannot have.
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
        terms: Terms = TERMS,
    ) -> None:
        if not model:
            raise BadOption(f"{terms.model}name is empty: expected the model's name at its server")
        if service.timeout_s <= 0 or service.retries < 0:
            raise BadOption(
                f"{terms.service}timeout_s must be greater than 0 and {terms.service}retries at "
                f"least 0, got {service.timeout_s:g} and {service.retries}"
            )
        self.model, self._url = model, base_of(url, terms)
        self._key, self._service, self._terms = checked_key(key, terms), service, terms
        self._extra, self._first_pause_s = checked_extra(extra or {}, terms), first_pause_s
        self._gate = Gate(service.requests_per_minute, service.tokens_per_minute, terms)
        self._refused: set[str] = set()
        self._listed: dict[str, dict[str, Any]] = {}
        self.tally = Tally()
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self._key}"} if self._key else {}
        local = is_loopback(self._url)
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(
                service.timeout_s, connect=min(_CONNECT_S, service.timeout_s), pool=None
            ),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_S),
            trust_env=not local,
            # Reading the certificates takes 0.2 s, and a request without TLS needs none.
            verify=not (local and self._url.startswith("http:")),
        )

    async def check(self) -> None:
        """Ask the server for its models, so that a wrong address or name fails before any episode.

        Where the server keeps no list, or the model is not on it, a short request decides.

        Raises:
            ModelUnavailable: Nothing answers there.
            BadOption: The server refuses the key or the model; the message names others.
        """
        self._listed = await self._models()
        if self.model not in self._listed and f"models/{self.model}" not in self._listed:
            sampling = Sampling(temperature=1.0, max_tokens=_CHECK_TOKENS)
            await self.complete([{"role": "user", "content": "Say yes."}], sampling, 0)

    async def complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        """Return the answer to `messages`; an empty one, not finished, if a filter refuses them.

        Raises:
            PromptTooLong: The prompt and its longest response do not fit.
            BadOption: The server does not take the request and would not take it again.
            ModelUnavailable: Every attempt failed.
        """
        try:
            return await self._answer(messages, sampling, seed)
        except Refused as refused:
            if refused.too_long:
                raise PromptTooLong(f"{self.model}: {self._clean(refused.words)}") from None
            if not refused.filtered:
                raise BadOption(self._refusal(refused, count_images(messages))) from None
            return Answer("", finished=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    def identity(self) -> dict[str, Any]:
        """Return which model this is: equal for equal models, wherever their server is.

        `root` is there after `check` if the server tells what it loaded under the model's name.
        """
        root = valued(self._listed.get(self.model, {}), "root", str)
        told = {"root": root} if root and root != self.model else {}
        return {"backend": "openai", "name": self.model} | told

    def scope(self) -> dict[str, Any]:
        """Return what an answer depends on besides messages, sampling and seed, JSON-plain."""
        return self.identity() | {"url": self._url, "extra": self._extra}

    def report(self) -> dict[str, Any]:
        """Return what the run of requests was like, JSON-plain: counts, waits, names in answers.

        `refused_fields` are those that the server does not take; without `seed`, equal requests may
        have unequal answers.
        """
        waits = {"waited_s": round(self._gate.waited_s, 3)}
        return self.tally.report() | waits | {"refused_fields": sorted(self._refused)}

    async def _answer(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Answer:
        attempt = failed = silent = 0
        answered = self.tally.answers
        while True:
            body = json_of(self.model, messages, sampling, seed, self._service.stream)
            body = self._adapted(body) | self._extra
            attempt += 1
            try:
                reply = await self._attempt(body, tokens_expected(messages, sampling), sampling)
                silent += reply.silent
                if not reply.silent or silent == _BELIEVED:
                    return reply.answer
                self.tally.retries["empty answer"] += 1
            except Refused as refused:
                field = refused_field(refused, body)
                if field is None:
                    raise
                self._refused.add(field)
                attempt -= 1
            except Fault as fault:
                self.tally.retries[fault.cause] += 1
                others_go_on, answered = self.tally.answers > answered, self.tally.answers
                failed += not (fault.status == 429 and others_go_on)
                if failed > self._service.retries:
                    raise ModelUnavailable(self._failure(fault, attempt)) from None
                # Others that go on show that the server is not worse off than before.
                await self._pause(pause_s(fault, max(failed, 1), seed, self._first_pause_s), fault)

    def _adapted(self, body: dict[str, Any]) -> dict[str, Any]:
        spare = self._refused & {*spare_fields(body), "max_tokens"}
        adapted = {key: value for key, value in body.items() if key not in spare}
        if "max_tokens" in spare:
            adapted["max_completion_tokens"] = body["max_tokens"]
        return adapted

    async def _pause(self, seconds: float, fault: Fault) -> None:
        _log.info("%s: %s; again in %.1f s", self.model, self._clean(fault.words), seconds)
        if fault.status == 429 or fault.retry_after_s is not None:
            self._gate.close(seconds)
            return
        self.tally.paused_s += seconds
        await asyncio.sleep(seconds)

    async def _attempt(self, body: dict[str, Any], expected: float, sampling: Sampling) -> Reply:
        sent = await self._gate.enter(expected)
        self.tally.requests += 1
        url, content = f"{self._url}/chat/completions", json.dumps(body)
        try:
            async with (
                Attempt(self._service.timeout_s),
                self._client.stream("POST", url, content=content) as response,
            ):
                reply = await read_reply(response, sampling.max_tokens)
        except Fault as fault:
            if fault.status == 429:
                self._gate.slow_down(sent)
            raise
        self._gate.speed_up()
        self.tally.answers += 1
        self.tally.served |= {reply.model} - {""}
        self.tally.fingerprints |= {reply.fingerprint} - {""}
        used = reply.answer.prompt + reply.answer.response
        if used:
            self._gate.correct(used - expected)
        return reply

    async def _models(self) -> dict[str, dict[str, Any]]:
        """Return what the server lists by name; nothing where it keeps no list."""
        attempt = 0
        while True:
            attempt += 1
            try:
                async with (
                    Attempt(self._service.timeout_s),
                    self._client.stream("GET", f"{self._url}/models") as response,
                ):
                    reply = parsed(await read_body(response, _LONGEST_LIST))
                break
            except Fault as fault:
                if attempt > min(self._service.retries, _CHECK_RETRIES):
                    raise ModelUnavailable(
                        f"no server of models answers at {self._url} ({self._clean(fault.words)}): "
                        f"check that it runs and that {self._terms.model}url leads to it"
                    ) from None
                await self._pause(pause_s(fault, attempt, 0, self._first_pause_s), fault)
        if response.status_code in (401, 403):
            refused = judge(response.status_code, reply, response.headers)
            assert isinstance(refused, Refused)
            raise BadOption(self._refusal(refused))
        rows = valued(reply, "data", list) if isinstance(reply, dict) else None
        return {
            row["id"]: row
            for row in rows or []
            if isinstance(row, dict) and isinstance(row.get("id"), str)
        }

    def _refusal(self, refused: Refused, images: int = 0) -> str:
        near = difflib.get_close_matches(self.model, self._listed, n=3, cutoff=0.3)
        names = ", ".join(near or list(self._listed)[:8])
        known = f"; it knows {names}" if names else ""
        said = f"status {refused.status}: {refused.words}" if refused.status else refused.words
        return (
            f"the server at {self._url} refuses a request to {self.model!r} "
            f"({self._clean(said)}): {self._clean(advice(refused, known, images, self._terms))}"
        )

    def _failure(self, fault: Fault, attempts: int) -> str:
        times = f"{attempts} attempt{'s' * (attempts > 1)}"
        said = self._clean(fault.words)
        return f"no answer from {self.model!r} at {self._url} after {times}; the last one: {said}"

    def _clean(self, words: str) -> str:
        return shown(words, self._key)
