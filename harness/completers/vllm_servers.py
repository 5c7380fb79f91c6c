"""Generation by servers of vLLM: requests go to the least busy one that has the weights.

Prompts go as tokens and answers come as tokens, so training sees what was generated, token for
token. Every answer says which weights each of its tokens was drawn with. One of other weights, such
as those that a restarted server begins with, is thrown away before anyone sees it; its server is
given the weights again while the others go on, and the request is made once more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from agentgyms.chat.posting import JsonPoster
from agentgyms.chat.refusals import Refused
from agentgyms.chat.service import Fault
from harness.completers import Message, Sampling, check_length, images_of
from harness.completers.vllm_server import START, VLLMServer
from harness.errors import ConfigError, ContextOverflow, HarnessError, ModelUnavailable
from harness.reader import Reader
from harness.rollout import Completion, Usage

_log = logging.getLogger(__name__)

PATIENCE_S: Final = 600.0
"""A request waits so long for a server that is down, for instance because it starts again."""

_ATTEMPTS: Final = 5
"""Most failures of one request; servers that were busy, or had restarted, are none."""

_LOOK_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 10.0


@dataclass(eq=False)
class _Visit:
    """What belongs to one event loop: connections, places, and who mends which server."""

    loop: asyncio.AbstractEventLoop
    posters: dict[VLLMServer, JsonPoster]
    places: asyncio.Semaphore
    requests: int = 0
    menders: dict[VLLMServer, asyncio.Task[None]] = field(default_factory=dict)


class VLLMServersCompleter:
    """Answers with the model that several servers have.

    A request whose server fails goes to another one. If none is left it waits for one to come back,
    and ends in `ModelUnavailable` at last, so that its group is played again. A server that says it
    is busy (429 or 503) gets nothing more for as long as it asks.

    Args:
        servers: Checked.
        reader: The policy's.
        max_length: Most tokens of prompt and response.
        max_batch: Most requests under way at all servers together.
        mend: Makes sure that a server has the weights of `version` and raises `ModelUnavailable` if
            it does not answer. It is called in a thread.
        patience_s: Longest wait of a request for a server that can be used.

    Attributes:
        version: Label of the weights that answers must come from.
    """

    def __init__(
        self,
        servers: Sequence[VLLMServer],
        reader: Reader,
        max_length: int,
        max_batch: int,
        mend: Callable[[VLLMServer], None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Connect to nothing yet."""
        self.servers, self.version = list(servers), ""
        self.max_length, self._reader = max_length, reader
        self._max_batch, self._mend, self._patience_s = max_batch, mend, patience_s
        self._closed_until: dict[VLLMServer, float] = {}
        self._last_words: dict[VLLMServer, str] = {}
        self._visit: _Visit | None = None

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`; log-probabilities as `HFCompleter` gives them.

        Raises:
            ContextOverflow: Prompt and longest response do not fit into the model's context.
            ConfigError: The prompt shows an image, or a server refuses the request.
            ModelUnavailable: No server gave an answer in time.
        """
        if images_of(messages):
            raise ConfigError(
                "the prompt shows an image, and vLLM's servers are given tokens only: use "
                "rollout.backend = 'hf', or a style without an image"
            )
        prompt_ids = self._reader.encode_chat(messages)
        check_length(prompt_ids, sampling, self.max_length)
        body = {
            "token_ids": list(prompt_ids),
            "sampling_params": {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_tokens,
                "seed": seed % 2**63,
                "stop_token_ids": sorted(self._reader.stop_ids),
                "logprobs": 0,  # of the token drawn, and of no other
                "detokenize": False,
            },
        }
        async with self._visiting() as visit, visit.places:
            return self._completion(prompt_ids, await self._answer(visit, body))

    async def _answer(self, visit: _Visit, body: dict[str, Any]) -> dict[str, Any]:
        failures = 0
        give_up = time.monotonic() + self._patience_s
        while failures < _ATTEMPTS:
            server = await self._free_server(visit, give_up)
            server.in_flight += 1
            try:
                choice = await server.generate(visit.posters[server], body)
            except Refused as refused:
                raise _refusal(server, refused) from None
            except Fault as fault:
                if not self._is_busy(server, fault):
                    failures += 1
                    self._put_down(visit, server, fault.words)
                continue
            finally:
                server.in_flight -= 1
            if self._is_current(choice):
                return choice
            self._put_down(visit, server, "it answers with other weights, as after a restart")
        raise ModelUnavailable(f"no answer from vLLM after {_ATTEMPTS} attempts: {self._words()}")

    def _is_current(self, choice: dict[str, Any]) -> bool:
        spans = choice.get("weight_versions")
        if not spans:
            raise ConfigError(f"a vLLM server does not say which weights it has: {START}")
        return all(span["version"] == self.version for span in spans)

    async def _free_server(self, visit: _Visit, give_up: float) -> VLLMServer:
        """Return the least busy server that has the weights, once there is one."""
        while time.monotonic() < give_up:
            now = time.monotonic()
            usable = []
            for server in self.servers:
                if server.version != self.version:
                    self._send_mender(visit, server)
                elif self._closed_until.get(server, 0.0) <= now:
                    usable.append(server)
            if usable:
                return min(usable, key=lambda server: server.in_flight)
            await asyncio.sleep(_LOOK_S)
        raise ModelUnavailable(
            f"no vLLM server could be used for {self._patience_s:.0f} s: {self._words()}"
        )

    def _is_busy(self, server: VLLMServer, fault: Fault) -> bool:
        """Leave a server in peace that asks for it, and return whether it does."""
        if fault.status not in (429, 503):
            return False
        seconds = 1.0 if fault.retry_after_s is None else fault.retry_after_s
        self._last_words[server] = fault.words
        self._closed_until[server] = time.monotonic() + seconds
        return True

    def _put_down(self, visit: _Visit, server: VLLMServer, why: str) -> None:
        if server.version:
            _log.warning("the vLLM server at %s cannot be used: %s", server.url, why)
        server.version, self._last_words[server] = "", why
        self._send_mender(visit, server)

    def _send_mender(self, visit: _Visit, server: VLLMServer) -> None:
        mender = visit.menders.get(server)
        if mender is None:
            visit.menders[server] = asyncio.create_task(self._look_after(visit, server))
        elif mender.done() and not mender.cancelled() and (error := mender.exception()):
            raise error

    async def _look_after(self, visit: _Visit, server: VLLMServer) -> None:
        """Try until a server has the weights."""
        pause_s = _LOOK_S
        while True:
            try:
                await asyncio.to_thread(self._mend, server)
                break
            except ModelUnavailable as e:
                self._last_words[server] = str(e)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        _log.warning("the vLLM server at %s is back, with the policy's weights", server.url)
        del visit.menders[server]

    def _words(self) -> str:
        return "; ".join(f"{server.url}: {why}" for server, why in self._last_words.items())

    @asynccontextmanager
    async def _visiting(self) -> AsyncIterator[_Visit]:
        """Give what belongs to the running event loop; the last request closes it."""
        loop = asyncio.get_running_loop()
        visit = self._visit
        if visit is None or visit.loop is not loop:
            posters = {server: server.poster() for server in self.servers}
            visit = self._visit = _Visit(loop, posters, asyncio.Semaphore(self._max_batch))
        visit.requests += 1
        try:
            yield visit
        finally:
            visit.requests -= 1
            if not visit.requests:
                self._visit = None
                await _leave(visit)

    def _completion(self, prompt_ids: tuple[int, ...], choice: dict[str, Any]) -> Completion:
        said = tuple(choice["token_ids"])
        told = choice["logprobs"]["content"]
        return Completion(
            text=self._reader.decode(said),
            prompt_ids=prompt_ids,
            response_ids=said,
            logprobs=tuple(float(step["logprob"]) for _, step in zip(said, told, strict=True)),
            finished=choice["finish_reason"] == "stop",
            usage=Usage(len(prompt_ids), len(said), 1),
        )


async def _leave(visit: _Visit) -> None:
    for mender in visit.menders.values():
        mender.cancel()
    await asyncio.gather(*visit.menders.values(), return_exceptions=True)
    for poster in visit.posters.values():
        await poster.close()


def _refusal(server: VLLMServer, refused: Refused) -> HarnessError:
    if refused.too_long:
        return ContextOverflow(f"the vLLM server at {server.url}: {refused.words}")
    advice = f": {START}" if refused.status in (401, 403, 404) else ""
    return ConfigError(
        f"the vLLM server at {server.url} refuses a request (status {refused.status}: "
        f"{refused.words}){advice}"
    )
