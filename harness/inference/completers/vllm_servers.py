"""Generation by vLLM servers: a request goes to the least busy server that has the weights.

Prompts and answers are tokens, with the label of the weights that sampled them. An answer of other
weights, for instance of a restarted server, is discarded and the request is repeated.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from agentgyms.core import tracing
from agentgyms.models.error_replies import RequestRejected
from agentgyms.models.json_client import JsonPoster
from agentgyms.models.rate_limit import RetryableError
from harness.inference.completers import Sampling
from harness.inference.completers.local_answers import (
    GeneratedTokens,
    check_length,
    completion_of,
    generate_in_parts,
)
from harness.inference.completers.vllm_server import START, VLLMServer
from harness.model.tokenizer import ChatTokenizer
from harness.types.errors import ConfigError, ContextOverflow, HarnessError, ModelUnavailable
from harness.types.messages import Message, images_of
from harness.types.rollout import Completion

_log = logging.getLogger(__name__)

PATIENCE_S: Final = 600.0
"""Longest wait of a request for a server that is down, for instance restarting."""

_ATTEMPTS: Final = 5
"""Most failures of one request; a busy or restarted server does not count."""

_POLL_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 10.0


@dataclass(eq=False)
class _LoopState:
    """The connections, request slots and tasks of one event loop."""

    loop: asyncio.AbstractEventLoop
    posters: dict[VLLMServer, JsonPoster]
    slots: asyncio.Semaphore
    requests: int = 0
    restoring: dict[VLLMServer, asyncio.Task[None]] = field(default_factory=dict)


class VLLMServersCompleter:
    """Answers with a model that runs on several servers.

    If a server fails, its request goes to another one. If no server is left, the request waits for
    one, and raises `ModelUnavailable` after `patience_s`, so that its group is played again. A
    server that is busy (429 or 503) gets no request for as long as it asks. `version` is the label
    of the weights that answers must come from.
    """

    def __init__(
        self,
        servers: Sequence[VLLMServer],  # after `VLLMServer.check`.
        chat_tokenizer: ChatTokenizer,
        max_length: int,
        max_batch: int,  # most unfinished requests of all servers together
        # Gives a server the weights of `version` unless it has them; raises `ModelUnavailable` if
        # it does not answer. It is called in a thread.
        restore: Callable[[VLLMServer], None],
        patience_s: float = PATIENCE_S,  # longest wait of a request for a server that can be used
    ) -> None:
        self.servers, self.version = list(servers), ""
        self.max_length, self._chat_tokenizer = max_length, chat_tokenizer
        self._max_batch, self._restore, self._patience_s = max_batch, restore, patience_s
        self._busy_until: dict[VLLMServer, float] = {}
        self._last_errors: dict[VLLMServer, str] = {}
        self._state: _LoopState | None = None

    @tracing.traced("vllm")
    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`; log-probabilities as `HFCompleter` gives them.

        Raises `ContextOverflow` if prompt and longest response do not fit, `ConfigError` if the
        prompt shows an image or a server refuses it, and `ModelUnavailable` if no server answered
        in time.
        """
        if images_of(messages):
            raise ConfigError(
                "the prompt shows an image, and vLLM servers take only tokens: use "
                "rollout.backend = 'hf', or a style without an image"
            )
        prompt_ids = self._chat_tokenizer.encode_chat(messages)
        check_length(prompt_ids, sampling, self.max_length)
        async with self._loop_state() as state, state.slots:
            made = await generate_in_parts(
                self._chat_tokenizer,
                prompt_ids,
                sampling,
                seed,
                lambda *request: self._generated(state, *request),
            )
        return completion_of(self._chat_tokenizer, prompt_ids, made)

    async def _generated(
        self, state: _LoopState, prompt_ids: tuple[int, ...], sampling: Sampling, seed: int
    ) -> GeneratedTokens:
        body = {
            "token_ids": list(prompt_ids),
            "sampling_params": {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_tokens,
                "seed": seed % 2**63,
                "stop_token_ids": sorted(self._chat_tokenizer.stop_ids),
                "logprobs": 0,  # only of the sampled token
                "detokenize": False,
            },
        }
        choice = await self._answer(state, body)
        ids, steps = tuple(choice["token_ids"]), choice["logprobs"]["content"]
        logprobs = (float(step["logprob"]) for _, step in zip(ids, steps, strict=True))
        return GeneratedTokens(ids, tuple(logprobs), choice["finish_reason"] == "stop")

    async def _answer(self, state: _LoopState, body: dict[str, Any]) -> dict[str, Any]:
        failures = 0
        give_up = time.monotonic() + self._patience_s
        while failures < _ATTEMPTS:
            server = await self._free_server(state, give_up)
            server.in_flight += 1
            try:
                choice = await server.generate(state.posters[server], body)
            except RequestRejected as refused:
                raise _refusal(server, refused) from None
            except RetryableError as fault:
                if not self._pause_if_busy(server, fault):
                    failures += 1
                    self._mark_down(state, server, fault.message)
                continue
            finally:
                server.in_flight -= 1
            if self._is_current(choice):
                return choice
            self._mark_down(state, server, "it answers with other weights (restarted?)")
        raise ModelUnavailable(f"no answer from vLLM after {_ATTEMPTS} attempts: {self._errors()}")

    def _is_current(self, choice: dict[str, Any]) -> bool:
        spans = choice.get("weight_versions")
        if not spans:
            raise ConfigError(f"a vLLM server does not say which weights it has: {START}")
        return all(span["version"] == self.version for span in spans)

    async def _free_server(self, state: _LoopState, give_up: float) -> VLLMServer:
        """Return the least busy server that has the weights; wait until there is one."""
        while time.monotonic() < give_up:
            now = time.monotonic()
            usable = []
            for server in self.servers:
                if server.version != self.version:
                    self._start_restoring(state, server)
                elif self._busy_until.get(server, 0.0) <= now:
                    usable.append(server)
            if usable:
                return min(usable, key=lambda server: server.in_flight)
            await asyncio.sleep(_POLL_S)
        raise ModelUnavailable(
            f"no vLLM server could be used for {self._patience_s:.0f} s: {self._errors()}"
        )

    def _pause_if_busy(self, server: VLLMServer, fault: RetryableError) -> bool:
        """Pause requests to a server that is busy; return whether it is."""
        if fault.status not in (429, 503):
            return False
        seconds = 1.0 if fault.retry_after_s is None else fault.retry_after_s
        self._last_errors[server] = fault.message
        self._busy_until[server] = time.monotonic() + seconds
        return True

    def _mark_down(self, state: _LoopState, server: VLLMServer, why: str) -> None:
        if server.version:
            _log.warning("the vLLM server at %s cannot be used: %s", server.url, why)
        server.version, self._last_errors[server] = "", why
        self._start_restoring(state, server)

    def _start_restoring(self, state: _LoopState, server: VLLMServer) -> None:
        task = state.restoring.get(server)
        if task is None:
            state.restoring[server] = asyncio.create_task(self._keep_restoring(state, server))
        elif task.done() and not task.cancelled() and (error := task.exception()):
            raise error

    async def _keep_restoring(self, state: _LoopState, server: VLLMServer) -> None:
        pause_s = _POLL_S
        while True:
            try:
                await asyncio.to_thread(self._restore, server)
                break
            except ModelUnavailable as e:
                self._last_errors[server] = str(e)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        _log.warning("the vLLM server at %s is back, with the policy's weights", server.url)
        del state.restoring[server]

    def _errors(self) -> str:
        return "; ".join(f"{server.url}: {why}" for server, why in self._last_errors.items())

    @asynccontextmanager
    async def _loop_state(self) -> AsyncIterator[_LoopState]:
        """Yield the state of the running event loop; its last request closes it."""
        loop = asyncio.get_running_loop()
        state = self._state
        if state is None or state.loop is not loop:
            posters = {server: server.poster() for server in self.servers}
            state = self._state = _LoopState(loop, posters, asyncio.Semaphore(self._max_batch))
        state.requests += 1
        try:
            yield state
        finally:
            state.requests -= 1
            if not state.requests:
                self._state = None
                await _close(state)


async def _close(state: _LoopState) -> None:
    for task in state.restoring.values():
        task.cancel()
    await asyncio.gather(*state.restoring.values(), return_exceptions=True)
    for poster in state.posters.values():
        await poster.close()


def _refusal(server: VLLMServer, refused: RequestRejected) -> HarnessError:
    if refused.too_long:
        return ContextOverflow(f"the vLLM server at {server.url}: {refused.message}")
    advice = f": {START}" if refused.status in (401, 403, 404) else ""
    return ConfigError(
        f"the vLLM server at {server.url} refuses a request (status {refused.status}: "
        f"{refused.message}){advice}"
    )
