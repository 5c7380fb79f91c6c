"""Who generates the rollouts of a run, and how it gets the policy's weights after each update."""

from __future__ import annotations

from typing import Protocol

from harness.completers import Completer
from harness.completers.hf import HFCompleter
from harness.config import Config
from harness.policy import Policy


class Generator(Protocol):
    """A completer that follows the policy in training.

    Attributes:
        completer: Answers with the weights of the last `sync`.
        is_policy: The policy itself answers: its log-probabilities are the policy's own.
    """

    completer: Completer
    is_policy: bool

    def sync(self) -> None:
        """Take over the policy's weights; called before the first step and after every update."""
        ...

    def sleep(self) -> None:
        """Give memory back until `wake`: the policy learns now."""
        ...

    def wake(self) -> None:
        """Be ready to answer again."""
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

    def wake(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def make_generator(config: Config, policy: Policy) -> Generator:
    """Return who generates with a policy."""
    return OwnGenerator(config, policy)
