"""What Gymnasium itself asks of an environment, of every id of the package."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env, data_equivalence

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


@pytest.mark.parametrize("env_id", IDS)
def test_two_environments_of_one_seed_say_the_same(env_id: str) -> None:
    """In every value, type and order of keys, through an end and the episode behind it."""
    one, two = gym.make(env_id, max_turns=6), gym.make(env_id, max_turns=6)
    one.action_space.seed(0)
    assert data_equivalence(one.reset(seed=0), two.reset(seed=0), exact=True)
    for _ in range(9):
        action = one.action_space.sample()
        here, there = one.step(action), two.step(action)
        assert data_equivalence(here, there, exact=True)
        assert list(here[-1]) == list(there[-1])
        if here[2] or here[3]:
            assert data_equivalence(one.reset(seed=0), two.reset(seed=0), exact=True)
    one.close()
    two.close()


RENDERED = {"ansi": str, "rgb_array": np.ndarray, "ansi_list": list, "rgb_array_list": list}


@pytest.mark.parametrize("env_id", IDS)
def test_every_mode_renders(env_id: str) -> None:
    modes = set(gym.make(env_id).metadata["render_modes"]) - {"human"}
    assert modes
    for mode in modes:
        env = gym.make(env_id, render_mode=mode)
        env.reset(seed=0)
        for _ in range(2):
            shown = env.render()
            assert isinstance(shown, RENDERED[mode])
            assert len(shown)
            env.step(env.action_space.sample())
        env.close()


CORRIDOR, SOKOBAN = "agentgyms/Corridor-v0", "agentgyms/Sokoban-v0"


def test_a_vector_of_local_environments_takes_wrappers_and_its_own_arguments():
    vector = gym.make_vec(
        CORRIDOR,
        2,
        wrappers=[lambda env: wrappers.TransformReward(env, lambda reward: reward + 5)],
        vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode.DISABLED},
        max_turns=4,
    )
    assert type(vector) is gym.vector.SyncVectorEnv
    assert vector.metadata["autoreset_mode"] is gym.vector.AutoresetMode.DISABLED
    vector.reset(seed=3)
    assert vector.step(("left", "left"))[1].tolist() == [5, 5]
    assert vector.get_attr("max_turns") == (4, 4)
    vector.close()
    again = gym.make_vec(CORRIDOR, 2, autoreset_mode="Disabled")
    assert again.metadata["autoreset_mode"] is gym.vector.AutoresetMode.DISABLED
    again.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_vector_of_a_mode_is_made_by_gymnasium(mode: str) -> None:
    vector = gym.make_vec(CORRIDOR, 2, vectorization_mode=mode)
    assert type(vector).__name__.lower() == f"{mode}vectorenv"
    vector.close()


def test_wrappers_that_begin_with_nothing_have_an_empty_text():
    env = wrappers.FrameStackObservation(gym.make(CORRIDOR), 3, padding_type="zero")
    observation, _ = env.reset(seed=3)
    assert observation[:2] == ("", "")
    assert observation[2] == gym.make(CORRIDOR).reset(seed=3)[0]
    late = wrappers.DelayObservation(gym.make(CORRIDOR), 1)
    assert late.reset(seed=3)[0] == ""
    assert late.step("left")[0] == observation[2]


def test_lists_of_rendered_turns_and_frames():
    env = gym.make(CORRIDOR, render_mode="ansi_list")
    observation, _ = env.reset(seed=3)
    after = env.step("right")[0]
    assert env.render() == [observation, after]
    env = gym.make(SOKOBAN, render_mode="rgb_array_list")
    env.reset(seed=3)
    env.step("up")
    frames = env.render()
    assert [frame.dtype for frame in frames] == [np.uint8, np.uint8]
    with pytest.warns(UserWarning, match="'human' rendering"):
        env = gym.make(SOKOBAN, render_mode="human")
    assert isinstance(env, wrappers.HumanRendering)
    assert env.unwrapped.render_mode == "rgb_array"
