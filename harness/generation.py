"""Who generates the rollouts of a run, and how it gets the policy's weights after each update."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

import torch

from harness.completers import Completer
from harness.completers.hf import HFCompleter
from harness.config import Config
from harness.credit.arguments import one_of
from harness.errors import ConfigError
from harness.policy import Policy
from harness.ranks import ALONE, Ranks
from harness.sharding import whole

_TRANSFERS: Final[dict[str, tuple[str | None, ...]]] = {
    "hf": (None,),
    "vllm": (None, "reload"),
    "server": (None, "disk", "nccl", "ipc"),
}
"""Ways of weights by backend. In one process they pass from tensor to tensor: "reload"."""


class Generator(Protocol):
    """A completer that follows the policy in training.

    Attributes:
        completer: Answers with the weights of the last `sync`.
        is_policy: The policy itself answers: its log-probabilities are the policy's own.
    """

    @property
    def completer(self) -> Completer: ...  # noqa: D102 - above

    @property
    def is_policy(self) -> bool: ...  # noqa: D102 - above

    def sync(self) -> None:
        """Take over the policy's weights; called before the first step and after every update."""
        ...

    def sleep(self) -> None:
        """Give memory back until the next `sync`: the policy learns now."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class OwnGenerator:
    """The policy answers itself; there is nothing to take over."""

    is_policy = True

    def __init__(self, config: Config, policy: Policy) -> None:
        """Answer with the policy."""
        limit = config.agent.max_context
        self.completer: Completer = HFCompleter(policy, config.rollout.max_batch, limit)

    def sync(self) -> None:
        """Do nothing."""

    def sleep(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class ReplicaGenerator(OwnGenerator):
    """A whole copy of a policy that several processes share answers, one in each of them.

    The processes play different episodes, so they would ask layers that they share differently
    often. The policy is sharded once it is copied.
    """

    def __init__(self, config: Config, policy: Policy, ranks: Ranks) -> None:
        """Copy the policy."""
        self._policy, self._copy = policy, policy.frozen_copy()
        self._copy.device = ranks.device
        self._copy.model.to(ranks.device)
        super().__init__(config, self._copy)
        policy.shard(ranks)

    @torch.no_grad()
    def sync(self) -> None:
        """Take over the weights that are trained; all processes do so."""
        own = dict(self._copy.model.named_parameters())
        for name, weight in self._policy.model.named_parameters():
            if weight.requires_grad:
                own[name].copy_(whole(weight))


def make_own(config: Config, policy: Policy, ranks: Ranks) -> Generator:
    """Return who generates without another engine."""
    return (
        OwnGenerator(config, policy) if ranks.size == 1 else ReplicaGenerator(config, policy, ranks)
    )


def make_generator(config: Config, policy: Policy, folder: Path, ranks: Ranks = ALONE) -> Generator:
    """Return who generates with a policy, which several processes share from then on.

    Args:
        config: The run, resolved.
        policy: The one to follow.
        folder: Of the run; an engine's files go into `generator/` in it.
        ranks: This process among those that train.
    """
    if config.rollout.backend == "hf":
        return make_own(config, policy, ranks)
    policy.shard(ranks)
    from harness.vllm_generators import EngineGenerator, ServersGenerator

    kind = EngineGenerator if config.rollout.backend == "vllm" else ServersGenerator
    return kind(config, policy, folder / "generator", ranks)


def check_generation(config: Config, *, shows_image: bool) -> None:
    """Refuse settings of generation that do not fit together.

    Args:
        config: The run, resolved.
        shows_image: Its prompts show images.

    Raises:
        ConfigError: They do not; the message names them.
    """
    rollout = config.rollout
    one_of(
        f"rollout.transfer of {rollout.backend!r}", rollout.transfer, _TRANSFERS[rollout.backend]
    )
    _check_context(config.agent.max_tokens, config.agent.max_context)
    if bool(rollout.urls) != (rollout.backend == "server"):
        raise ConfigError(
            f"rollout.urls is {list(rollout.urls)} and rollout.backend {rollout.backend!r}: "
            "'server' needs the addresses of its servers, and no other backend has any"
        )
    if rollout.engine and rollout.backend != "vllm":
        raise ConfigError("rollout.engine is for rollout.backend = 'vllm': leave it out")
    if rollout.backend == "server" and config.policy.model in ("tiny", "tiny-vl"):
        raise ConfigError(
            f"policy.model {config.policy.model!r} is made by the run, so no server can have it: "
            "use a folder or hub name, and start the servers with it"
        )
    if shows_image and rollout.backend != "hf":
        raise ConfigError(
            f"agent.style {config.agent.style!r} shows images, which rollout.backend "
            f"{rollout.backend!r} does not take yet: use 'hf'"
        )
    _check_sleep(config)
    _check_cap(config)


def _check_context(answer: int, most: int | None) -> None:
    if most is not None and most <= answer:
        raise ConfigError(
            f"agent.max_context is {most}, which leaves no room for a prompt beside a response of "
            f"agent.max_tokens = {answer}: raise it, or lower agent.max_tokens"
        )


def _check_sleep(config: Config) -> None:
    on_gpu = config.policy.device != "cpu" and torch.cuda.is_available()
    if config.rollout.sleep and not (config.rollout.backend == "vllm" and on_gpu):
        raise ConfigError(
            "rollout.sleep frees the GPU memory of rollout.backend = 'vllm' while the policy "
            "learns: leave it out on the CPU and for other backends"
        )


def _check_cap(config: Config) -> None:
    from harness.rescoring import recomputes

    if config.rollout.mismatch_cap is not None and not recomputes(config):
        raise ConfigError(
            "rollout.mismatch_cap compares the policy's log-probabilities with the generator's: "
            "use it with rollout.old_logprobs = 'recompute' and a method whose policy plays"
        )
