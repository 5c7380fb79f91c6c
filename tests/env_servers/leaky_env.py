"""An environment that keeps something of every episode."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from agentgyms.core.env import Outcome
from agentgyms.envs.corridor import CorridorEnv

_KEPT: list[bytes] = []


class LeakyEnv(CorridorEnv):
    """A corridor that is never forgotten."""

    def begin(self, task: Any, rng: Any) -> Outcome:
        _KEPT.append(b"\1" * 50_000)
        return super().begin(task, rng)


gym.register("test/Leaky-v0", entry_point=LeakyEnv)
