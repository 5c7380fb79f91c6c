"""Opens the model that an evaluation asks for, wherever it runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.config import EvaluationConfig, ModelConfig, digest_values, without_seed
from harness.inference.completers import Completer, Sampling
from harness.runs.answer_pace import AnswerPace
from harness.types.errors import ConfigError
from harness.types.messages import Message
from harness.types.rollout import Completion

if TYPE_CHECKING:
    from harness.evaluation.model_source import Source


_ARGUMENTS: Final = "chat_template_kwargs"
"""Field of a request with arguments of the chat template, by vLLM's name."""


async def _nothing() -> None:
    """Close a model that needs no closing."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that answers.

    `identity` is JSON-plain, without secrets, and equal whenever the same model is opened again:
    `backend`, `name`, `revision` and all else that decides its answers. `revision` is the hub's
    commit, or the hash of the files in a folder.
    """

    completer: Completer | None  # None for `expert` and `random`
    identity: dict[str, Any]
    trained: dict[str, Any] | None = None  # the training run's configuration
    tool_format: str | None = "hermes"  # the chat template's; None if unknown
    close: Callable[[], Awaitable[None]] = _nothing  # frees it
    report: Callable[[], dict[str, Any]] = dict  # retries and the like, JSON-plain; not for results


def backend_of(model: ModelConfig) -> str:
    """Return where a model runs, one of `BACKENDS`, also where the configuration leaves it open."""
    if model.backend is None:
        if model.name in ("expert", "random"):
            return model.name
        return "openai" if model.url else "hf"
    return model.backend


async def open_model(config: EvaluationConfig) -> Model:
    """Return the model that the configuration names: loaded into this process, or on its server.

    Raises `ConfigError` if it is missing, cannot be loaded or needs another setting, and
    `ModelUnavailable` if its server does not answer.
    """
    backend = backend_of(config.model)
    if backend not in ("hf", "vllm") and config.model.checkpoint != "newest":
        raise ConfigError(
            f"model.checkpoint is for a training run's folder, and the backend is {backend}: leave "
            "it out"
        )
    if backend == "expert":
        named = {"name": "expert", "revision": None, "expert": config.model.expert}
        return Model(None, {"backend": "expert", **named})
    if backend == "random":
        return Model(None, {"backend": "random", "name": "random", "revision": None})
    if not config.model.name:
        raise ConfigError(
            "model.name is missing: give a model's name at its server, a folder, a hub name or a "
            "training run"
        )
    if backend == "openai":
        return await _open_server(config)
    return _open_hf(config) if backend == "hf" else _open_vllm(config)


async def _open_server(config: EvaluationConfig) -> Model:
    from harness.inference.completers.openai import (
        OpenAICompleter,
        refuse_observation_limit,
        refuse_thought_limit,
    )

    refuse_thought_limit(config.agent.max_thought_tokens)
    refuse_observation_limit(config.agent.max_observation)
    model = config.model
    if model.url is None:
        raise ConfigError(
            f"model.url is missing: the backend openai needs the address of the server that has "
            f"{model.name!r}, such as http://127.0.0.1:8000/v1"
        )
    key = os.environ.get(model.key_variable)  # a server of one's own needs none
    service = config.service
    server = OpenAICompleter(model.name, model.url, key, service, model.extra, cached=service.cache)
    try:
        await server.check()
    except BaseException:
        await server.close()
        raise
    identity = {"revision": None, **server.identity()}
    return Model(server, identity, close=server.close, report=server.report)


def _open_hf(config: EvaluationConfig) -> Model:
    from harness.evaluation import model_source
    from harness.inference.completers.hf import HFCompleter
    from harness.model import hub
    from harness.model.policy import Policy

    source = model_source.find(config.model.name, config.model.checkpoint)
    _refuse_revision(config.model, source)
    try:
        policy = Policy.load(source.path, config.model.device, config.model.revision, tested=False)
    except (ConfigError, RuntimeError) as e:  # torch's own, such as too little memory
        raise hub.not_loaded("model.name", source.path, e.__cause__ or e) from e
    policy.round_for_generation()
    policy.test()
    policy.chat_encoder.template_arguments = _template_arguments(config.model, source)
    # A GPU decides the precision; of CPUs only some compute in bfloat16.
    identity = {**_identity("hf", config.model, source), "device": policy.device.type}
    if policy.device.type == "cpu" and policy.precision != "float32":
        identity["precision"] = policy.precision
    completer, called = HFCompleter(policy, config.model.max_batch), policy.chat_encoder.tool_format
    return Model(completer, identity, source.trained, called)


def _open_vllm(config: EvaluationConfig) -> Model:
    from harness.evaluation import model_source
    from harness.inference.completers.vllm import VLLMCompleter
    from harness.model import hub

    model, source = config.model, model_source.find(config.model.name, config.model.checkpoint)
    _refuse_revision(model, source)
    if model.device is not None:
        raise ConfigError(
            f"model.device {model.device!r} is not for the backend vllm: vLLM runs on the device "
            "that it was built for; leave model.device out"
        )
    arguments = {"max_num_seqs": model.max_batch, **model.engine}
    try:
        with _whole(source) as path:
            completer = VLLMCompleter(path, revision=model.revision, arguments=arguments)
    except ConfigError as e:
        if isinstance(e.__cause__, ImportError):
            raise
        raise hub.not_loaded("model.name", source.path, e.__cause__ or e) from e
    encoder = completer.chat_tokenizer.chat_encoder
    encoder.template_arguments = _template_arguments(model, source)
    dtype = str(completer.engine.model_config.dtype).removeprefix("torch.")
    identity = {**_identity("vllm", model, source), "dtype": dtype, "vllm": completer.version}
    called = encoder.tool_format
    return Model(completer, identity, source.trained, called, close=completer.close)


def _template_arguments(model: ModelConfig, source: Source) -> dict[str, Any]:
    """Return the arguments of the chat template: the configured ones, else the training run's.

    The run's date stays unless another is configured. Raises `ConfigError` if `model.extra` has
    fields that no model in this process takes.
    """
    from harness.model.chat_templates import clock

    given = dict(model.extra)
    run_arguments = (source.trained or {}).get("policy", {}).get(_ARGUMENTS, {})
    arguments = given.pop(_ARGUMENTS, run_arguments)
    if given or not isinstance(arguments, dict):
        raise ConfigError(
            f"model.extra is {model.extra!r}: a model in this process takes {_ARGUMENTS} alone, a "
            "table such as { enable_thinking = false }"
        )
    date = {name: value for name, value in run_arguments.items() if name == clock.NAME}
    return date | arguments


@contextmanager
def _whole(source: Source) -> Iterator[str]:
    """Yield the name or folder that an engine loads; adapters are merged into their model."""
    from harness.model.adapters import base_of

    if not source.local or base_of(source.path) is None:
        yield source.path
        return
    from harness.model.policy import Policy

    with tempfile.TemporaryDirectory() as folder:
        Policy.load(source.path, "cpu", tested=False).save(Path(folder), merged=True)
        yield folder


def _refuse_revision(model: ModelConfig, source: Source) -> None:
    if source.local and model.revision is not None:
        raise ConfigError(
            f"model.revision {model.revision!r} is for hub names, and model.name is the folder "
            f"{model.name!r}: leave model.revision out"
        )


def _identity(backend: str, model: ModelConfig, source: Source) -> dict[str, Any]:
    from harness.evaluation import model_source

    if source.local:
        revision: str | None = model_source.digest(source.path)
    else:
        revision = model_source.commit(source.path, model.revision)
    named: dict[str, Any] = {"backend": backend, "name": model.name, "revision": revision}
    if source.step is not None:
        named["step"] = source.step
    if source.trained is not None:
        run = source.trained
        named["trained"] = {
            "method": run["method"]["name"],
            "model": run["policy"]["model"],
            "seed": run["run"]["seed"],
            "settings": digest_values(without_seed(run)),  # equal but for the seed
        }
    return named


class Counted:
    """A completer whose answers are counted."""

    def __init__(self, completer: Completer, pace: AnswerPace) -> None:
        self._completer, self._pace = completer, pace

    def __getattr__(self, name: str) -> object:
        return getattr(self._completer, name)

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the completer's response."""
        self._pace.begin()
        made = await self._completer.complete(messages, sampling, seed)
        self._pace.add(made)
        return made
