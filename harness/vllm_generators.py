"""vLLM as the generator of a training run: an engine in this process, or servers.

After every update, with no request under way, each engine takes the policy's weights, forgets what
it computed with older ones, and is asked for log-probabilities of a known text, which have to be
the policy's (`harness.probe`). What it answers from then on is labelled with the update.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from harness.completers.vllm import VLLMCompleter
from harness.completers.vllm_server import VLLMServer
from harness.completers.vllm_servers import PATIENCE_S, VLLMServersCompleter
from harness.config import Config
from harness.errors import ModelUnavailable
from harness.footprint import ENGINE_SHARE
from harness.policy import Policy
from harness.probe import Probe
from harness.ranks import Ranks
from harness.transfer import make_transfer

_log = logging.getLogger(__name__)


class EngineGenerator:
    """An engine of vLLM in this process, beside the policy; under torchrun one in each process.

    It is made from the policy's configuration and tokenizer, with weights that mean nothing; the
    first `sync` gives it all of them. While it sleeps its GPU memory is the policy's.

    Args:
        config: The run, resolved.
        policy: The one to follow.
        folder: Is made for what vLLM reads at its start.
        ranks: This process among those that train.
    """

    is_policy = False

    def __init__(self, config: Config, policy: Policy, folder: Path, ranks: Ranks) -> None:
        """Start the engine.

        Raises:
            ConfigError: vLLM is not installed, or cannot run the model with these arguments.
        """
        ranks.of_first(lambda: _describe(policy, folder))
        arguments = _arguments(config, policy, ranks)
        self._engine = VLLMCompleter(
            str(folder), seed=config.run.seed, arguments=arguments, reader=policy.reader
        )
        self.completer = self._engine
        self._policy, self._probe = policy, Probe(policy)
        self._sleeps, self._asleep = config.rollout.sleep, False

    def sync(self) -> None:
        """Give the engine the policy's weights, waking it up.

        Raises:
            ModelUnavailable: The engine failed.
            TrainingError: It answers with other weights.
        """
        if self._asleep:
            self._engine.wake("weights")
        self._engine.load_weights(self._policy.named_weights())
        if self._asleep:
            self._engine.wake("kv_cache")
            self._asleep = False
        self._probe.expect()
        told = asyncio.run(self._engine.score(self._probe.ids))
        self._probe.check(told, "vLLM in this process")
        self._probe.settle()

    def sleep(self) -> None:
        """Free the engine's GPU memory until the next `sync`, if the run asks for it."""
        if self._sleeps and not self._asleep:
            self._engine.sleep()
            self._asleep = True

    def close(self) -> None:
        """End the engine."""
        asyncio.run(self._engine.close())  # again does nothing


def _describe(policy: Policy, folder: Path) -> None:
    """Write what vLLM reads of a model besides its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    policy.model.config.save_pretrained(folder)
    policy.model.generation_config.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)


def _arguments(config: Config, policy: Policy, ranks: Ranks) -> dict[str, Any]:
    """Return the engine's arguments; the run's own come last."""
    on_cpu = policy.device.type == "cpu"
    exact = on_cpu or config.policy.precision == "float32"
    arguments: dict[str, Any] = {
        "load_format": "dummy",
        "dtype": "float32" if exact else "bfloat16",
        "enforce_eager": on_cpu,
        "enable_prefix_caching": True,
        "enable_sleep_mode": config.rollout.sleep,
        "gpu_memory_utilization": ENGINE_SHARE,
        "max_model_len": longest(config, policy),
        "max_num_seqs": config.rollout.max_batch,
    }
    if ranks.size > 1:
        arguments["distributed_executor_backend"] = "external_launcher"
    return arguments | config.rollout.engine


def longest(config: Config, policy: Policy) -> int:
    """Return the most tokens of a prompt and its response."""
    return min(policy.max_length, config.agent.max_context or policy.max_length)


class ServersGenerator:
    """Servers of vLLM at `rollout.urls`.

    A server that is down when weights are sent is left out until it is back, as long as another one
    is there; whenever it comes back, it gets the weights of the latest update before it is asked
    for anything (`VLLMServersCompleter`). The run ends if none is back in ten minutes.

    Args:
        config: The run, resolved.
        policy: The one to follow.
        folder: Weights may pass through it.
        ranks: This process among those that train; the first sends weights, all ask.
        patience_s: Longest wait for servers that are down.

    Attributes:
        servers: In the order of the addresses.
    """

    is_policy = False

    def __init__(
        self,
        config: Config,
        policy: Policy,
        folder: Path,
        ranks: Ranks,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Find the servers.

        Raises:
            ModelUnavailable: One of them does not answer in time; it may be starting.
            ConfigError: One was started in another way than training needs, or has another model.
        """
        self.servers = [VLLMServer(url) for url in config.rollout.urls]
        for server in self.servers:
            await_start(server, patience_s)
        limit = min([longest(config, policy), *(server.max_length for server in self.servers)])
        self._mending = {server: threading.Lock() for server in self.servers}
        self.completer = VLLMServersCompleter(
            self.servers, policy.reader, limit, config.rollout.max_batch, self._mend, patience_s
        )
        self._transfer = make_transfer(policy, config.rollout.transfer, folder, ranks)
        self._probe, self._ranks, self._patience_s = Probe(policy), ranks, patience_s
        self._run = ranks.of_first(lambda: uuid.uuid4().hex[:8])
        self._updates = 0

    def sync(self) -> None:
        """Give the servers the policy's weights.

        Raises:
            ModelUnavailable: None of them answers.
            TrainingError: One could not take them, or answers with others.
        """
        self._updates += 1
        version = f"{self._run}-{self._updates:06d}"
        self._transfer.publish(version)
        self._probe.expect()
        self.completer.version = version
        for server in self.servers:
            server.version = ""
            self._ranks.of_first(lambda server=server: self._send(server))  # type: ignore[misc]
        has = self._ranks.of_first(self._await_one)
        for server, one in zip(self.servers, has, strict=True):
            server.version = one
        self._probe.settle()

    def _send(self, server: VLLMServer) -> None:
        try:
            self._mend(server)
        except ModelUnavailable as e:
            _log.warning("%s", e)

    def _await_one(self) -> list[str]:
        """Return what the servers have, once one of them has the weights."""
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
                self._send(server)
        return [server.version for server in self.servers]

    def _mend(self, server: VLLMServer) -> None:
        """Make sure that a server has the weights of the latest update; see the completer."""
        with self._mending[server]:
            version = self.completer.version
            if server.weight_version() != version:
                server.load(version, self._transfer.send)
            self._probe.check(server.score(self._probe.ids), f"the vLLM server at {server.url}")
            server.version = version

    def sleep(self) -> None:
        """Do nothing: servers have GPUs of their own."""

    def close(self) -> None:
        """Leave the servers running: whoever started them ends them."""


def await_start(server: VLLMServer, patience_s: float) -> None:
    """Learn what a server has once it answers: servers take minutes to start.

    Raises:
        ModelUnavailable: It did not answer in time.
        ConfigError: It was started in another way than training needs.
    """
    give_up = time.monotonic() + patience_s
    said = False
    while True:
        try:
            server.check()
            return
        except ModelUnavailable as e:
            if time.monotonic() > give_up:
                raise ModelUnavailable(f"{e}: start it, or leave it out of rollout.urls") from e
            if not said:
                _log.warning("waiting up to %.0f s for a server: %s", patience_s, e)
            said = True
        time.sleep(min(1.0, patience_s))
