"""What Gymnasium itself asks of an environment, of every id of the package."""

from __future__ import annotations

import warnings

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from agentgyms.registration import ENVIRONMENTS

IDS = sorted(set(ENVIRONMENTS) - {"agentgyms/WebShopBrowser-v0"})


@pytest.mark.parametrize("env_id", IDS)
def test_the_checker_of_gymnasium_finds_nothing(env_id: str) -> None:
    env = gym.make(env_id)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()
