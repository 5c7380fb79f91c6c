"""What Gymnasium itself asks of an environment, of every id of the package."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

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


def _future(env: Any) -> list[Any]:
    """Return what comes of two sampled actions and an unseeded episode, without arrays."""
    seen = [env.step(env.action_space.sample()) for _ in range(2)]
    seen += [env.reset(), env.step(env.action_space.sample())]
    return [repr(one) for one in seen]


def _pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("copied", [copy.deepcopy, _pickled])
@pytest.mark.parametrize("env_id", IDS)
def test_a_copy_goes_on_as_the_original_does(env_id: str, copied: Callable[[Any], Any]) -> None:
    env = gym.make(env_id)
    env.action_space.seed(5)
    before = copied(env.unwrapped)
    assert repr(before.reset()) == repr(env.reset())
    env.step("look")
    twin = copied(env)
    assert twin.spec == env.spec
    assert twin.unwrapped.snapshot() == env.unwrapped.snapshot()
    again = copied(twin)
    twin.close()  # which ends nothing of the others
    assert _future(again) == _future(env)
    for one in (before, again, env):
        one.close()
