"""Generation with vLLM in this process: the engine is stepped here, between the episodes' turns.

The prompts are token for token those that training writes, for they come from the same code. As no
second process and no thread has a part in it, which requests share a batch depends on the requests
alone.

Whoever trains gives the engine new weights with `load_weights`; see `harness.vllm_generators`.

On the CPU the environment variable VLLM_CPU_KVCACHE_SPACE says how many GiB the cache may take, and
the engine's arguments are `{ dtype = "float32", enforce_eager = true }`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness.completers import Message, Sampling, check_length, images_of
from harness.errors import ConfigError, ModelUnavailable
from harness.reader import Reader
from harness.rollout import Completion, Usage

_log = logging.getLogger(__name__)

_NO_ARGUMENTS: Final[Mapping[str, Any]] = {}
_ENVIRONMENT: Final = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
}
"""What vLLM is told unless it was told otherwise: one process, few words, no call home."""


class VLLMCompleter:
    """Answers with a model that vLLM runs in this process.

    Text models only so far. A temperature between 0 and 0.01 counts as 0.01 in vLLM.

    Args:
        model: A folder or hub name.
        revision: Branch, tag or commit of a hub name; None takes its main branch.
        seed: Of the engine; requests have seeds of their own.
        arguments: Of vLLM's engine, such as `{"max_model_len": 8192}`.
        reader: Of the model, if it is there already; None loads it.

    Attributes:
        engine: vLLM's `LLMEngine`.
        version: Of vLLM.
        reader: Its tokenizer as prompts and answers need it.
        max_length: Longest sequence in tokens.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        seed: int = 0,
        arguments: Mapping[str, Any] = _NO_ARGUMENTS,
        reader: Reader | None = None,
    ) -> None:
        """Load the model.

        Raises:
            ConfigError: vLLM is not installed, or cannot run the model with these arguments.
        """
        self.version = _version()
        self.reader = reader or _reader(model, revision)
        self.engine: Any = _engine(model, {"revision": revision, "seed": seed, **arguments})
        self.max_length = int(self.engine.model_config.max_model_len)
        self._numbers = itertools.count()
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._worker: asyncio.Task[None] | None = None
        self._dead = ""

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`; log-probabilities as `HFCompleter` gives them.

        Raises:
            ContextOverflow: Prompt and longest response do not fit into the model's context.
            ConfigError: The prompt shows an image, or vLLM refuses the sampling.
            ModelUnavailable: The engine failed.
        """
        if images_of(messages):
            raise ConfigError(
                "the prompt shows an image, and vLLM in this process is given texts only: use "
                "model.backend = 'hf', or a style without an image"
            )
        prompt_ids = self.reader.encode_chat(messages)
        check_length(prompt_ids, sampling, self.max_length)
        try:
            parameters = self._parameters(sampling, seed)
        except (ValueError, TypeError, _client_error()) as e:
            raise ConfigError(f"vLLM refuses the request: {e}") from e
        return self._completion(prompt_ids, await self._ask(prompt_ids, parameters))

    async def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Return the log-probability of each token but the first, at temperature 1.

        Raises:
            ModelUnavailable: The engine failed.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        parameters = SamplingParams(
            temperature=0.0,
            max_tokens=1,
            prompt_logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        told = (await self._ask(tuple(ids), parameters)).prompt_logprobs[1:]
        return tuple(step[token].logprob for step, token in zip(told, ids[1:], strict=True))

    def load_weights(self, weights: Iterable[tuple[str, Any]]) -> None:
        """Take over weights by transformers' names, and forget what was computed with the old ones.

        No request may be under way. An output layer that is tied to the embedding has to be among
        them: without it the engine goes on answering with the old one, and says nothing.

        Raises:
            ModelUnavailable: The engine failed, or requests are under way.
        """
        if self.engine.has_unfinished_requests():
            raise ModelUnavailable("vLLM is given weights while it answers: wait for all answers")
        try:
            given = {"weights_iterator": iter(weights)}
            self.engine.collective_rpc("reload_weights", kwargs=given)
            forgotten = self.engine.reset_prefix_cache()
        except Exception as e:
            self._fail(f"vLLM could not take over weights: {type(e).__name__}: {e}")
            raise ModelUnavailable(self._dead) from e
        if not forgotten:
            self._fail("vLLM keeps what it computed with older weights: its cache is in use")
            raise ModelUnavailable(self._dead)

    def sleep(self) -> None:
        """Free the GPU memory of weights and cache; see `wake`."""
        self.engine.sleep(level=2)

    def wake(self, what: str) -> None:
        """Take memory again: for `"weights"`, which have to be loaded then, or `"kv_cache"`."""
        self.engine.wake_up([what])

    async def close(self) -> None:
        """End the engine and free its memory; requests under way fail."""
        if self.engine is None:
            return
        self._fail("vLLM's engine was closed")
        self.engine.engine_core.shutdown()
        self.engine = None

    async def _ask(self, prompt_ids: tuple[int, ...], parameters: Any) -> Any:
        """Return vLLM's output for a prompt; a caller that is cancelled takes its request back."""
        name = self._send(prompt_ids, parameters)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[name] = done
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._generate())
        try:
            return await done
        finally:
            if self._pending.pop(name, None) is not None and not self._dead:
                self.engine.abort_request([name])  # its episode was stopped

    def _send(self, prompt_ids: tuple[int, ...], parameters: Any) -> str:
        if self._dead:
            raise ModelUnavailable(self._dead)
        name = str(next(self._numbers))
        prompt = {"type": "token", "prompt_token_ids": list(prompt_ids)}
        try:
            self.engine.add_request(name, prompt, parameters)
        except (ValueError, TypeError, _client_error()) as e:
            raise ConfigError(f"vLLM refuses the request: {e}") from e
        return name

    def _parameters(self, sampling: Sampling, seed: int) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            seed=seed % 2**63,
            stop_token_ids=sorted(self.reader.stop_ids),
            logprobs=0,  # of the token drawn, and of no other
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    async def _generate(self) -> None:
        """Step the engine until nobody waits."""
        try:
            while self._pending and not self._dead:
                await asyncio.sleep(0)  # every episode that can ask does so first
                if self._dead or not self.engine.has_unfinished_requests():
                    self._give_up_lost()
                    continue  # those who waited have not looked yet
                for output in self.engine.step():
                    done = self._pending.pop(output.request_id, None)
                    if done and not done.done():
                        done.set_result(output)
        except Exception as e:
            _log.warning("vLLM's engine failed", exc_info=True)
            self._fail(f"vLLM's engine failed: {type(e).__name__}: {e}")

    def _give_up_lost(self) -> None:
        """Tell those who wait for a request that the engine does not have that none will come."""
        for done in self._pending.values():
            if not done.done():
                done.set_exception(ModelUnavailable("vLLM lost a request and gave no answer to it"))

    def _fail(self, reason: str) -> None:
        self._dead = reason
        for done in self._pending.values():
            if not done.done():
                done.set_exception(ModelUnavailable(reason))

    def _completion(self, prompt_ids: tuple[int, ...], output: Any) -> Completion:
        answer = output.outputs[0]
        if answer.finish_reason not in ("stop", "length"):
            raise ModelUnavailable(f"vLLM ended a request with {answer.finish_reason!r}")
        said = tuple(answer.token_ids)
        return Completion(
            text=self.reader.decode(said),
            prompt_ids=prompt_ids,
            response_ids=said,
            logprobs=tuple(
                step[token].logprob for step, token in zip(answer.logprobs, said, strict=True)
            ),
            finished=answer.finish_reason == "stop",
            usage=Usage(len(prompt_ids), len(said), 1),
        )


def _client_error() -> type[Exception]:
    """Return what vLLM raises for a request that it does not take."""
    from vllm.exceptions import VLLMClientError

    kind: type[Exception] = VLLMClientError
    return kind


def _engine(model: str, arguments: Mapping[str, Any]) -> Any:
    from vllm import EngineArgs, LLMEngine
    from vllm.exceptions import VLLMError
    from vllm.platforms import current_platform

    chosen: dict[str, Any] = {"logprobs_mode": "processed_logprobs", "disable_log_stats": True}
    if current_platform.is_cpu():
        # A prompt read in pieces sets a request's random numbers back, which fails on the CPU.
        chosen["enable_chunked_prefill"] = False
    try:
        return LLMEngine.from_engine_args(EngineArgs(model=model, **{**chosen, **arguments}))
    except (OSError, RuntimeError, ValueError, TypeError, VLLMError) as e:
        raise ConfigError(f"vLLM cannot run the model {model!r}: {e}") from e


def _version() -> str:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import vllm
    except ImportError as e:
        raise ConfigError(
            f"model.backend = 'vllm' needs vLLM, which cannot be imported here ({e}): install it "
            "with pip install 'agentgyms[vllm]', or use its server and model.url"
        ) from e
    return str(vllm.__version__)


def _reader(model: str, revision: str | None) -> Reader:
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig

    try:
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision)
        try:
            generation = GenerationConfig.from_pretrained(model, revision=revision or "main")
        except OSError:  # it has none of its own
            architecture = AutoConfig.from_pretrained(model, revision=revision)
            generation = GenerationConfig.from_model_config(architecture)
    except (OSError, ValueError) as e:
        raise ConfigError(f"the model {model!r} cannot be loaded: {e}") from e
    return Reader(tokenizer, generation)
