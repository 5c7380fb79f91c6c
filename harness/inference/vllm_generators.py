"""vLLM as the generator of a training run: an engine in this process, or servers.

After every update each engine loads the policy's weights, clears its cache and is checked
(`harness.inference.weight_check`). Later answers of a server carry the update's label.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from harness.config import Config
from harness.distributed.process_group import ProcessGroup
from harness.inference.completers.vllm import VLLMCompleter
from harness.inference.completers.vllm_server import VLLMServer, concurrently
from harness.inference.completers.vllm_servers import PATIENCE_S, VLLMServersCompleter
from harness.inference.weight_check import WeightCheck
from harness.inference.weight_sync import make_transfer
from harness.model import adapters
from harness.model.policy import Policy
from harness.types.errors import ConfigError, ModelUnavailable

_log = logging.getLogger(__name__)

ENGINE_SHARE: Final = 0.4
"""Default share of a GPU's memory that vLLM's engine takes beside the policy."""


class EngineGenerator:
    """A vLLM engine in this process, beside the policy; under torchrun one in each process.

    It is made from the policy's configuration and tokenizer, with dummy weights; the first `sync`
    loads the policy's. While it sleeps, the policy can use its GPU memory. `folder` is made; it
    gets the files that vLLM reads at its start.
    """

    def __init__(
        self, config: Config, policy: Policy, folder: Path, processes: ProcessGroup
    ) -> None:
        if policy.device.type == "cpu" and adapters.has_experts(policy.model):
            raise ConfigError(
                "rollout.backend 'vllm' on the CPU keeps the old weights of experts (vLLM packs "
                f"them): set it to 'hf' for this {policy.model.config.model_type}, or use a GPU"
            )
        processes.run_on_first(lambda: _write_model_files(policy, folder))
        arguments = _engine_arguments(config, policy, processes)
        self._engine = VLLMCompleter(
            str(folder),
            seed=config.run.seed,
            arguments=arguments,
            chat_tokenizer=policy.chat_tokenizer,
        )
        self.completer = self._engine
        self._policy, self._weight_check = policy, WeightCheck(policy)
        self._may_sleep, self._asleep = config.rollout.sleep, False

    def sync(self) -> None:
        """Wake the engine up and load the policy's weights.

        Raises `ModelUnavailable` if it failed, `TrainingError` if it answers with other weights.
        """
        if self._asleep:
            self._engine.wake("weights")
        self._engine.load_weights(self._policy.named_weights())
        if self._asleep:
            self._engine.wake("kv_cache")
            self._asleep = False
        self._weight_check.update_expected()
        logprobs = asyncio.run(self._engine.score(self._weight_check.ids))
        self._weight_check.check(logprobs, "vLLM in this process")
        self._weight_check.fix_limit()

    def sleep(self) -> None:
        """Free the engine's GPU memory until the next `sync`, if `rollout.sleep` is set."""
        if self._may_sleep and not self._asleep:
            self._engine.sleep()
            self._asleep = True

    def close(self) -> None:
        """Shut the engine down; a second call does nothing."""
        asyncio.run(self._engine.close())


def _write_model_files(policy: Policy, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    policy.model.config.save_pretrained(folder)
    policy.model.generation_config.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)


def _engine_arguments(config: Config, policy: Policy, processes: ProcessGroup) -> dict[str, Any]:
    """Return the engine's arguments; those that the run sets come last."""
    on_cpu = policy.device.type == "cpu"
    is_float32 = on_cpu or config.policy.precision == "float32"
    arguments: dict[str, Any] = {
        "load_format": "dummy",
        "dtype": "float32" if is_float32 else "bfloat16",
        "enforce_eager": on_cpu,
        "enable_prefix_caching": True,
        "enable_sleep_mode": config.rollout.sleep,
        "gpu_memory_utilization": ENGINE_SHARE,
        "max_model_len": max_sequence_length(config, policy),
        "max_num_seqs": config.rollout.max_batch,
    }
    if processes.size > 1:
        arguments["distributed_executor_backend"] = "external_launcher"
    return arguments | config.rollout.engine


def max_sequence_length(config: Config, policy: Policy) -> int:
    """Return the maximum number of tokens of a prompt and its response."""
    return min(policy.max_length, config.agent.max_context or policy.max_length)


class ServersGenerator:
    """vLLM servers at `rollout.urls`.

    A server that is down when weights are sent gets them before any request when it is back. The
    run ends if no server is back after ten minutes.
    """

    def __init__(
        self,
        config: Config,
        policy: Policy,
        folder: Path,  # for weights that are sent as files
        # This process among those that train; the first one sends weights, all use servers.
        processes: ProcessGroup,
        patience_s: float = PATIENCE_S,  # longest wait for servers that are down
    ) -> None:
        """Wait for the servers and check their settings.

        Raises `ModelUnavailable` if one does not answer in time, `ConfigError` for wrong options.
        """
        self.servers = [VLLMServer(url) for url in config.rollout.urls]
        for server in self.servers:
            await_start(server, patience_s)
        limit = min(
            [max_sequence_length(config, policy), *(server.max_length for server in self.servers)]
        )
        self._locks = {server: threading.Lock() for server in self.servers}
        self.completer = VLLMServersCompleter(
            self.servers,
            policy.chat_tokenizer,
            limit,
            config.rollout.max_batch,
            self._restore,
            patience_s,
        )
        self._transfer = make_transfer(
            policy, config.rollout.transfer, folder, processes, self.servers
        )
        self._weight_check, self._processes, self._patience_s = (
            WeightCheck(policy),
            processes,
            patience_s,
        )
        self._run = processes.run_on_first(lambda: uuid.uuid4().hex[:8])
        self._updates = 0

    def sync(self) -> None:
        """Send the policy's weights to the servers.

        Raises `ModelUnavailable` if no server answers. Raises `TrainingError` if a server could not
        load them, or answers with other weights.
        """
        self._updates += 1
        version = f"{self._run}-{self._updates:06d}"
        self._transfer.publish(version)
        self._weight_check.update_expected()
        self.completer.version = version
        with contextlib.ExitStack() as held:
            for server in self.servers:
                held.enter_context(self._locks[server])
                server.version = ""
            self._send_to_all(version)
        versions = self._processes.run_on_first(self._wait_for_one)
        for server, version in zip(self.servers, versions, strict=True):
            server.version = version
        self._weight_check.fix_limit()

    def _send_to_all(self, version: str) -> None:
        """Send the weights to all servers that answer, at once; others are left out."""
        numbers = self._processes.run_on_first(self._pause_all)
        paused = [self.servers[number] for number in numbers]
        errors: dict[VLLMServer, Exception] = {}
        try:
            if self._processes.is_first or self._transfer.senders == "all":
                errors = self._transfer.send(paused)
            if self._processes.is_first:
                got = [server for server in paused if server not in errors]
                errors |= concurrently(lambda server: server.finish_load(version), got)
        finally:
            if self._processes.is_first:
                errors |= concurrently(VLLMServer.resume, paused)
        self._processes.run_on_first(lambda: self._check_all(paused, errors, version))

    def _pause_all(self) -> list[int]:
        errors = concurrently(VLLMServer.pause, self.servers)
        _raise_or_warn(errors)
        return [number for number, one in enumerate(self.servers) if one not in errors]

    def _check_all(
        self, servers: list[VLLMServer], errors: dict[VLLMServer, Exception], version: str
    ) -> None:
        _raise_or_warn(errors)
        for server in servers:
            if server not in errors:
                with _unavailable_warned():
                    self._check(server, version)

    def _check(self, server: VLLMServer, version: str) -> None:
        logprobs = server.score(self._weight_check.ids)
        self._weight_check.check(logprobs, f"the vLLM server at {server.url}")
        server.version = version

    def _wait_for_one(self) -> list[str]:
        """Wait until a server has the weights; return the versions of all servers."""
        give_up = time.monotonic() + self._patience_s
        while not any(server.version for server in self.servers):
            if time.monotonic() > give_up:
                urls = ", ".join(server.url for server in self.servers)
                raise ModelUnavailable(
                    f"no vLLM server answers, after {self._patience_s:.0f} s, at {urls}: start "
                    "them again and resume the run"
                )
            time.sleep(1.0)
            for server in self.servers:
                with _unavailable_warned():
                    self._restore(server)
        return [server.version for server in self.servers]

    def _restore(self, server: VLLMServer) -> None:
        """Send the weights of the latest update to a server unless it has them, and check them."""
        with self._locks[server]:
            version = self.completer.version
            if server.weight_version() != version:
                server.load(version, self._send_alone)
            self._check(server, version)

    def _send_alone(self, server: VLLMServer) -> None:
        senders = self._transfer.senders
        if senders == "all" or (senders == "first" and not self._processes.is_first):
            who = "the first process has" if senders == "first" else "the processes have"
            raise ModelUnavailable(f"{who} not sent weights to {server.url} yet")
        errors = self._transfer.send([server])
        if errors:
            raise errors[server]

    def sleep(self) -> None:
        """Do nothing: servers do not use the policy's GPU memory."""

    def close(self) -> None:
        """Do nothing: servers run on."""


def _raise_or_warn(errors: dict[VLLMServer, Exception]) -> None:
    """Raise the first error that is more than a server that does not answer."""
    for error in errors.values():
        with _unavailable_warned():
            raise error


@contextlib.contextmanager
def _unavailable_warned() -> Iterator[None]:
    try:
        yield
    except ModelUnavailable as e:
        _log.warning("%s", e)


def await_start(server: VLLMServer, patience_s: float) -> None:
    """Wait until a server answers, which may take minutes after its start, and check its settings.

    Raises `ModelUnavailable` if it did not answer in time, and the errors of `VLLMServer.check`.
    """
    give_up = time.monotonic() + patience_s
    warned = False
    while True:
        try:
            server.check()
            return
        except ModelUnavailable as e:
            if time.monotonic() > give_up:
                raise ModelUnavailable(f"{e}: start it, or leave it out of rollout.urls") from e
            if not warned:
                _log.warning("waiting up to %.0f s for a server: %s", patience_s, e)
            warned = True
        time.sleep(min(1.0, patience_s))
