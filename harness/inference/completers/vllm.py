"""Generation with vLLM in this process; the event loop of the episodes steps the engine.

There is no second process and no thread, so the batches depend only on the requests. On the CPU
VLLM_CPU_KVCACHE_SPACE sets the size of the cache in GiB, and the engine's arguments are
`{ dtype = "float32", enforce_eager = true }`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.core import imports, tracing
from harness.inference.completers import Sampling
from harness.inference.completers.local_answers import (
    GeneratedTokens,
    check_length,
    completion_of,
    generate_in_parts,
)
from harness.model import hub
from harness.model.tokenizer import ChatTokenizer
from harness.types.errors import ConfigError, ModelUnavailable
from harness.types.messages import Message, images_of
from harness.types.rollout import Completion

_log = logging.getLogger(__name__)

_NO_ARGUMENTS: Final[Mapping[str, Any]] = {}
_ENVIRONMENT: Final = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Defaults of vLLM's environment variables: one process, only errors, no usage statistics."""


class VLLMCompleter:
    """Answers with a model that vLLM runs in this process; images are not supported.

    vLLM's `LLMEngine` raises a temperature between 0 and 0.01 to 0.01.
    """

    def __init__(
        self,
        model: str,
        *,
        # Branch, tag or commit of a hub name; None takes its main branch.
        revision: str | None = None,
        seed: int = 0,  # of the engine; requests have seeds of their own
        # Arguments of vLLM's engine, such as `{"max_model_len": 8192}`.
        arguments: Mapping[str, Any] = _NO_ARGUMENTS,
        chat_tokenizer: ChatTokenizer | None = None,  # tokenizer of the model; None loads it
    ) -> None:
        """Load the model; raise `ConfigError` without vLLM or if vLLM refuses the arguments."""
        self.version = _version()
        self.chat_tokenizer = chat_tokenizer or _chat_tokenizer(model, revision)
        self.engine: Any = _engine(model, {"revision": revision, "seed": seed, **arguments})
        self.max_length = int(self.engine.model_config.max_model_len)
        self._request_ids = itertools.count()
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._worker: asyncio.Task[None] | None = None
        self._failure = ""

    @tracing.traced("vllm")
    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response to `messages`; log-probabilities as `HFCompleter` gives them.

        Raises `ContextOverflow` if prompt and longest response do not fit, `ConfigError` if the
        prompt shows an image or vLLM refuses the sampling, and `ModelUnavailable` if the engine
        failed.
        """
        if images_of(messages):
            raise ConfigError(
                "the prompt shows an image, and vLLM in this process takes only text: use "
                "model.backend = 'hf', or a style without an image"
            )
        prompt_ids = self.chat_tokenizer.encode_chat(messages)
        check_length(prompt_ids, sampling, self.max_length)
        made = await generate_in_parts(
            self.chat_tokenizer, prompt_ids, sampling, seed, self._generated
        )
        return completion_of(self.chat_tokenizer, prompt_ids, made)

    async def _generated(
        self, prompt_ids: tuple[int, ...], sampling: Sampling, seed: int
    ) -> GeneratedTokens:
        try:
            parameters = self._parameters(sampling, seed)
        except (ValueError, TypeError, _client_error()) as e:
            raise ConfigError(f"vLLM refuses the request: {e}") from e
        return _tokens_of(await self._request(prompt_ids, parameters))

    async def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Return the log-probability of each token but the first, at temperature 1."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        parameters = SamplingParams(
            temperature=0.0,
            max_tokens=1,
            prompt_logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        output = await self._request(tuple(ids), parameters)
        logprobs = output.prompt_logprobs[1:]
        return tuple(step[token].logprob for step, token in zip(logprobs, ids[1:], strict=True))

    def load_weights(self, weights: Iterable[tuple[str, Any]]) -> None:
        """Load weights by transformers' names, and clear the cache.

        A tied output layer has to be among them: without it the engine silently keeps the old one.
        Raises `ModelUnavailable` if the engine failed, or has unfinished requests.
        """
        if self.engine.has_unfinished_requests():
            raise ModelUnavailable(
                "vLLM cannot load weights while it has unfinished requests: wait for them"
            )
        try:
            arguments = {"weights_iterator": iter(weights)}
            self.engine.collective_rpc("reload_weights", kwargs=arguments)
            cleared = self.engine.reset_prefix_cache()
        except Exception as e:
            self._fail(f"vLLM could not load weights: {type(e).__name__}: {e}")
            raise ModelUnavailable(self._failure) from e
        if not cleared:
            self._fail("vLLM could not clear the cache of the old weights: it is in use")
            raise ModelUnavailable(self._failure)

    def sleep(self) -> None:
        """Free the GPU memory of weights and cache; see `wake`."""
        self.engine.sleep(level=2)

    def wake(self, what: str) -> None:
        """Allocate memory again, for `"weights"`, which must then be loaded, or `"kv_cache"`."""
        self.engine.wake_up([what])

    async def close(self) -> None:
        """Shut the engine down and free its memory; unfinished requests fail."""
        if self.engine is None:
            return
        self._fail("vLLM's engine was closed")
        self.engine.engine_core.shutdown()
        self.engine = None

    async def _request(self, prompt_ids: tuple[int, ...], parameters: Any) -> Any:
        """Return vLLM's output for a prompt; a cancelled caller aborts its request."""
        name = self._add_request(prompt_ids, parameters)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[name] = done
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._generate())
        try:
            return await done
        finally:
            if self._pending.pop(name, None) is not None and not self._failure:
                self.engine.abort_request([name])  # its episode was stopped

    def _add_request(self, prompt_ids: tuple[int, ...], parameters: Any) -> str:
        if self._failure:
            raise ModelUnavailable(self._failure)
        name = str(next(self._request_ids))
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
            stop_token_ids=sorted(self.chat_tokenizer.stop_ids),
            logprobs=0,  # only of the sampled token
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    async def _generate(self) -> None:
        try:
            while self._pending and not self._failure:
                await asyncio.sleep(0)  # every episode that can make a request does so first
                if self._failure or not self.engine.has_unfinished_requests():
                    self._fail_pending("vLLM lost a request and did not answer it")
                    continue  # the callers have not run yet
                for output in self.engine.step():
                    done = self._pending.pop(output.request_id, None)
                    if done and not done.done():
                        done.set_result(output)
        except Exception as e:
            _log.warning("vLLM's engine failed", exc_info=True)
            self._fail(f"vLLM's engine failed: {type(e).__name__}: {e}")

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self._fail_pending(reason)

    def _fail_pending(self, reason: str) -> None:
        for done in self._pending.values():
            if not done.done():
                done.set_exception(ModelUnavailable(reason))


def _tokens_of(output: Any) -> GeneratedTokens:
    answer = output.outputs[0]
    if answer.finish_reason not in ("stop", "length"):
        raise ModelUnavailable(f"vLLM ended a request with {answer.finish_reason!r}")
    ids = tuple(answer.token_ids)
    logprobs = (step[token].logprob for step, token in zip(answer.logprobs, ids, strict=True))
    return GeneratedTokens(ids, tuple(logprobs), answer.finish_reason == "stop")


def _client_error() -> type[Exception]:
    from vllm.exceptions import VLLMClientError

    kind: type[Exception] = VLLMClientError
    return kind


def _engine(model: str, arguments: Mapping[str, Any]) -> Any:
    from vllm import EngineArgs, LLMEngine
    from vllm.exceptions import VLLMError
    from vllm.platforms import current_platform

    chosen: dict[str, Any] = {"logprobs_mode": "processed_logprobs", "disable_log_stats": True}
    if current_platform.is_cpu():
        # Chunked prefill resets a request's random generator, which fails on the CPU.
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
            f"with {imports.install('vllm')}, or use its server and model.url"
        ) from e
    return str(vllm.__version__)


def _chat_tokenizer(model: str, revision: str | None) -> ChatTokenizer:
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig

    hub.check_files(Path(model))
    options = hub.load_options(model)
    source: dict[str, Any] = {"revision": revision, "trust_remote_code": False, **options}
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, **source)
        try:
            generation = GenerationConfig.from_pretrained(
                model, revision=revision or "main", **options
            )
        except OSError:  # the model has no generation_config.json
            architecture = AutoConfig.from_pretrained(model, **source)
            generation = GenerationConfig.from_model_config(architecture)
    except (OSError, ValueError) as e:
        raise hub.not_loaded("the model", model, e) from e
    made = ChatTokenizer(tokenizer, generation)
    made.check_ends()
    return made
