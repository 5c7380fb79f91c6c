"""Rollouts: an agent plays episodes, many at once.

Takes tasks, environments and a completer; returns rollouts with prompts, tokens and
log-probabilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.rollouts.agent import Agent
    from harness.rollouts.demonstrations import Demonstrator
    from harness.rollouts.env_pool import EnvPool
    from harness.rollouts.groups import CollectOptions

__all__ = ["Agent", "CollectOptions", "Demonstrator", "EnvPool"]

__getattr__ = lazy_names(
    __name__,
    {
        "harness.rollouts.agent": "Agent",
        "harness.rollouts.groups": "CollectOptions",
        "harness.rollouts.demonstrations": "Demonstrator",
        "harness.rollouts.env_pool": "EnvPool",
    },
)
