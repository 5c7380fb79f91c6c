"""Contract tests that compare environments: remote and local, members of a group, vectors."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from agentgyms.core.env import TextEnv
from agentgyms.core.errors import BadOption, UnknownTask
from agentgyms.core.outcome import shown
from agentgyms.testing.playing import (
    EPISODES,
    JUNK_ACTIONS,
    Make,
    assert_equal_episodes,
    assert_raises,
    plain,
)


def check_remote_parity(make_local: Make, make_remote: Make) -> None:
    """Check that a remote and a local environment have equal episodes, tasks and errors."""
    local, remote = make_local(), make_remote()
    assert list(local.unwrapped.tasks) == list(remote.unwrapped.tasks), "the task lists differ"
    assert local.observation_space == remote.observation_space, "the observation spaces differ"
    assert local.action_space == remote.action_space, "the action spaces differ"
    for seed in range(EPISODES):
        assert_equal_episodes(local, remote, seed)
    here, there = local.unwrapped, remote.unwrapped
    local.reset(seed=5)
    remote.reset(seed=5)
    snapshot = here.snapshot()
    assert there.snapshot() == snapshot, "local and remote snapshots differ"
    assert plain(there.restore(snapshot)) == plain(here.restore(snapshot)), "restored states differ"
    assert_raises(UnknownTask, lambda: remote.reset(options={"task_id": "no such task"}))
    assert_raises(BadOption, lambda: remote.reset(options={"no_such_option": 1}))
    local.close()
    remote.close()


def check_group(make_group: Callable[[], Any]) -> None:
    """Check that members of a `GroupEnv` start equal, seeded or not, and are independent."""
    group = make_group()
    for options in ({"seed": 4}, {"seed": None}, {"seed": 4}):
        observations, infos = group.reset(**options)
        for observation, info in zip(observations, infos, strict=True):
            for key in ("task_id", "state_key", "admissible_actions", "goal"):
                assert info[key] == infos[0][key], f"members start with different {key}"
            assert plain(observation) == plain(observations[0]), (
                "members start with different observations"
            )
    actions: list[str | None] = [None] * len(group)
    actions[0] = _non_final_action(group.envs[0], infos[0]["admissible_actions"])
    before = [env.snapshot() for env in group.envs]
    group.step(actions)
    for env, snapshot in list(zip(group.envs, before, strict=True))[1:]:
        assert env.snapshot() == snapshot, "stepping one member changed another"
    group.close()


def _non_final_action(env: TextEnv, listed: list[str]) -> str:
    """Return the first listed action that does not end the episode, the first one if all do."""
    for action in listed:
        branch = env.fork()
        _, _, terminated, truncated, _ = branch.step(action)
        branch.close()
        if not (terminated or truncated):
            return action
    return listed[0] if listed else "look"


def check_vector(env_id: str, *, num_envs: int = 4, **kwargs: Any) -> None:
    """Check that the default `AsyncVectorEnv` equals single environments at every step."""
    vector = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="async", **kwargs)
    singles = [gym.make(env_id, **kwargs) for _ in range(num_envs)]
    seeds = [100 + i for i in range(num_envs)]
    observations, infos = vector.reset(seed=seeds)  # type: ignore[arg-type]
    state = [env.reset(seed=seed) for env, seed in zip(singles, seeds, strict=True)]
    rngs = [random.Random(seed) for seed in seeds]
    for _ in range(6):
        for i, (observation, info) in enumerate(state):
            assert plain(_member(observations, i)) == plain(observation), (
                f"environment {i} shows {shown(_member(observations, i))}"
            )
            assert infos["state_key"][i] == info["state_key"], (
                f"environment {i} is in another state"
            )
        actions = [
            rng.choice(info["admissible_actions"] or JUNK_ACTIONS)
            for rng, (_, info) in zip(rngs, state, strict=True)
        ]
        results = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        if any(terminated or truncated for _, _, terminated, truncated, _ in results):
            break
        observations, _, _, _, infos = vector.step(actions)
        state = [(observation, info) for observation, _, _, _, info in results]
    vector.close()
    for env in singles:
        env.close()


def _member(observations: Any, index: int) -> Any:
    if isinstance(observations, dict):
        return {key: value[index] for key, value in observations.items()}
    return observations[index]
