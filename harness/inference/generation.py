"""Generators: completers that get the policy's weights after each update."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import torch

from harness.config import Config
from harness.distributed.fsdp import full_tensor
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.inference.completers import Completer
from harness.inference.completers.hf import HFCompleter
from harness.model.policy import Policy
from harness.types.errors import ConfigError


class Generator(Protocol):
    """A completer that follows the policy in training.

    Attributes:
        completer: Answers with the weights of the last `sync`.
    """

    @property
    def completer(self) -> Completer: ...  # noqa: D102 - above

    def sync(self) -> None:
        """Load the policy's weights; called before the first step and after every update."""
        ...

    def sleep(self) -> None:
        """Free memory until the next `sync`, while the policy learns."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class PolicyGenerator:
    """Generates with the policy itself, so there are no weights to copy."""

    def __init__(self, config: Config, policy: Policy) -> None:
        rollout, limit = config.rollout, config.agent.max_context
        kept = None if rollout.cache_gb is None else int(1e9 * rollout.cache_gb)
        kept = 0 if rollout.ahead else kept  # the weights change while texts are generated
        self._own = HFCompleter(policy, rollout.max_batch, limit, kept_bytes=kept)
        self.completer: Completer = self._own

    def sync(self) -> None:
        """Forget the keys and values that older weights have made."""
        self._own.forget()

    def sleep(self) -> None:
        """Forget keys and values, whose memory learning takes."""
        self._own.forget()

    def close(self) -> None:
        """Do nothing."""


class CopyGenerator(PolicyGenerator):
    """Generates with a copy of a policy: in mixed precision, sharded, or learning meanwhile.

    In mixed precision the copy has weights in bfloat16, which autocast would make again for each
    token. If the policy is sharded, each process has a whole copy, because sharded layers need
    equally many forward passes in all processes. The policy is sharded after it is copied.
    """

    def __init__(self, config: Config, policy: Policy, processes: ProcessGroup) -> None:
        self._policy, self._copy = policy, policy.generation_copy()
        if processes.size > 1:
            self._copy.place(processes.device)
        super().__init__(config, self._copy)
        policy.shard(processes)

    @torch.no_grad()
    def sync(self) -> None:
        """Copy the trained weights; all processes call this."""
        own = dict(self._copy.model.named_parameters(remove_duplicate=False))
        for name, weight in self._policy.model.named_parameters(remove_duplicate=False):
            if weight.requires_grad:
                own[name].copy_(full_tensor(weight))
        super().sync()


def make_policy_generator(config: Config, policy: Policy, processes: ProcessGroup) -> Generator:
    """Return a generator that needs no other engine."""
    shares = processes.size == 1 and policy.precision != "mixed" and not config.rollout.ahead
    if shares:
        return PolicyGenerator(config, policy)
    return CopyGenerator(config, policy, processes)


def make_generator(
    config: Config, policy: Policy, folder: Path, processes: ProcessGroup = SINGLE_PROCESS
) -> Generator:
    """Return the generator of a policy; several processes shard the policy here.

    Args:
        config: The run, resolved.
        policy: Its weights are used.
        folder: The run's folder; an engine's files go into its subfolder `generator/`.
        processes: This process among those that train.
    """
    if config.rollout.backend == "hf":
        return make_policy_generator(config, policy, processes)
    policy.shard(processes)
    from harness.inference.vllm_generators import EngineGenerator, ServersGenerator

    kind = EngineGenerator if config.rollout.backend == "vllm" else ServersGenerator
    return kind(config, policy, folder / "generator", processes)


def check_generation(config: Config, *, shows_image: bool) -> None:
    """Refuse settings of generation that this run or machine cannot use."""
    rollout = config.rollout
    if shows_image and rollout.backend != "hf":
        raise ConfigError(
            f"agent.style {config.agent.style!r} shows images, which rollout.backend "
            f"{rollout.backend!r} does not take yet: use 'hf'"
        )
    _check_sleep(config)
    _check_parallel(config)
    _check_correction(config)


def _check_parallel(config: Config) -> None:
    rollout = config.rollout
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        size = rollout.engine.get(name, 1)
        if rollout.backend == "vllm" and size != 1:
            raise ConfigError(
                f"rollout.engine.{name} is {size!r}, but rollout.backend 'vllm' has an engine in "
                "each process, on its GPU alone, since processes play different episodes: leave it "
                "out, or start vLLM servers on other GPUs and use rollout.backend = 'server'"
            )


def _check_sleep(config: Config) -> None:
    on_gpu = config.policy.device != "cpu" and torch.cuda.is_available()
    if config.rollout.sleep and not (config.rollout.backend == "vllm" and on_gpu):
        raise ConfigError(
            "rollout.sleep frees the GPU memory of rollout.backend = 'vllm' while the policy "
            "learns: leave it out on the CPU and for other backends"
        )


def _check_correction(config: Config) -> None:
    from harness.inference.old_logprobs import corrects, has_old_logprobs

    if corrects(config) and not has_old_logprobs(config):
        raise ConfigError(
            f"rollout.correction is {config.rollout.correction!r}: it compares the policy's "
            "log-probabilities with the generator's, but the rollouts of this run are not the "
            "policy's own: leave it out"
        )
