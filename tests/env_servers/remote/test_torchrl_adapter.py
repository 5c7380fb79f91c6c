"""TorchRL's own checks of an environment, where TorchRL is installed."""

from __future__ import annotations

import gymnasium as gym
import pytest

pytest.importorskip("torchrl", reason="needs TorchRL: pip install torchrl")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("env_id", ["agentgyms/Corridor-v0", "agentgyms/VisualSokoban-v0"])
def test_torchrl_plays_an_environment(env_id: str) -> None:
    from torchrl.envs import GymWrapper
    from torchrl.envs.utils import check_env_specs

    import agentgyms.adapters.torchrl  # noqa: F401

    env = GymWrapper(gym.make(env_id))
    check_env_specs(env)
    assert len(env.rollout(3)) == 3
    env.close()
