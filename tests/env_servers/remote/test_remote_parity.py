"""A remote environment is the local one: the contract's own tests, in process and over a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gymnasium as gym
import numpy as np
import pytest
from server_faults import CORRIDOR, TOKEN, importable_environments

import agentgyms
from agentgyms import testing
from agentgyms.remote import InProcessTransport, RemoteEnv
from agentgyms.serving.server import Server
from agentgyms.testing.playing import plain
from env_servers import create_app

IDS = importable_environments(browser=True)


@pytest.fixture(params=["in process", "socket"])
def make_remote(request: pytest.FixtureRequest, env_id: str) -> Iterator[Callable[..., gym.Env]]:
    """Makes environments of one server, over each of the two transports."""
    app = create_app(env_id, token=TOKEN)
    if request.param == "in process":
        transport = InProcessTransport({"http://server": app})
        yield lambda **kwargs: RemoteEnv(
            env_id, url="http://server", token=TOKEN, transport=transport, **kwargs
        )
        return
    with Server(app) as server:
        yield lambda **kwargs: gym.make(env_id, url=server.url, token=TOKEN, **kwargs)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize(
    "kwargs",
    [
        pytest.param({}, id="plain"),
        pytest.param({"oracle": True, "max_turns": 7}, id="oracle", marks=pytest.mark.slow),
    ],
)
def test_remote_equals_local(make_remote, env_id, kwargs):
    testing.check_remote_parity(lambda: gym.make(env_id, **kwargs), lambda: make_remote(**kwargs))


@pytest.mark.parametrize("make_remote", ["socket"], indirect=True)
@pytest.mark.parametrize("env_id", IDS)
def test_a_remote_environment_keeps_the_contract(make_remote, env_id):
    testing.check_env(make_remote)
    testing.check_determinism(make_remote)
    testing.check_snapshot(make_remote)


@pytest.mark.parametrize("make_remote", ["socket"], indirect=True)
@pytest.mark.parametrize("env_id", importable_environments())
def test_forks_go_on_as_replays_do(make_remote, env_id):
    testing.check_forks(lambda: gym.make(env_id, oracle=True), points=4)
    testing.check_forks(lambda: make_remote(oracle=True), points=4)


@pytest.mark.parametrize("env_id", IDS)
def test_remote_groups_and_worker_processes(env_id):
    with Server(create_app(env_id, token=TOKEN)) as server:
        there = {"url": server.url, "token": TOKEN}
        testing.check_group(lambda: agentgyms.make_group(env_id, 3, **there))
        testing.check_vector(env_id, num_envs=2, **there)


@pytest.mark.parametrize("env_id", IDS)
def test_the_address_may_come_from_the_environment(env_id, monkeypatch):
    name = env_id.partition("/")[2].partition("-")[0].upper()
    with Server(create_app(env_id, token=TOKEN)) as server:
        monkeypatch.setenv(f"AGENTGYMS_{name}_URL", f"{server.url}/, {server.url}")
        monkeypatch.setenv("AGENTGYMS_TOKEN", TOKEN)
        env = gym.make(env_id)
        assert isinstance(env.unwrapped, RemoteEnv)
        env.reset(seed=0)
        env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_snapshots_travel_both_ways_in_mid_episode(make_remote, env_id):
    local, remote = gym.make(env_id).unwrapped, make_remote().unwrapped
    for seed in range(3):
        _, info = local.reset(seed=seed)
        remote.reset(seed=seed)
        legal = info["admissible_actions"] or ["print(1)"]  # code cannot be listed
        for action in (legal[0], "not an action"):
            *_, terminated, _, _ = local.step(action)
            remote.step(action)
            if terminated:  # some games may end at once
                break
        saved = local.snapshot()
        assert remote.snapshot() == saved
        assert remote.fork().snapshot() == saved
        local.reset()
        remote.reset()
        assert plain(local.restore(saved)) == plain(remote.restore(saved))
        assert local.snapshot() == remote.snapshot() == saved
        assert plain(local.reset()) == plain(remote.reset()), "the generators went apart"


@pytest.mark.parametrize("env_id", [CORRIDOR])
def test_the_same_attributes(make_remote, env_id):
    kwargs = {"split": "valid_seen", "max_turns": 6, "oracle": True, "render_mode": "ansi"}
    local, remote = gym.make(env_id, **kwargs).unwrapped, make_remote(**kwargs).unwrapped
    for name in (
        *("split", "splits", "max_turns", "oracle", "render_mode", "data_version", "arguments"),
        *("observation_space", "action_space", "metadata"),
    ):
        assert getattr(local, name) == getattr(remote, name), name
    assert remote.tasks.families() == local.tasks.families()
    assert remote.tasks is remote.tasks, "the list is fetched once"
    assert remote.blocking
    assert local.reset(seed=1) == remote.reset(seed=1)
    assert local.render() == remote.render()
    assert local.episode_source == remote.episode_source
    assert agentgyms.expert(local)() == agentgyms.expert(remote)()


@pytest.mark.parametrize("env_id", [CORRIDOR])
def test_unseeded_episodes_follow_the_clients_generator(make_remote, env_id):
    local, remote = gym.make(env_id).unwrapped, make_remote().unwrapped
    for env in (local, remote):
        env.np_random = np.random.default_rng(5)
    for _ in range(10):
        assert local.reset() == remote.reset()
    assert local.np_random.bit_generator.state == remote.np_random.bit_generator.state


@pytest.mark.parametrize("env_id", [CORRIDOR])
def test_forks_go_their_own_ways(make_remote, env_id):
    env = make_remote().unwrapped
    env.reset(seed=2)
    env.step("right")
    twin = env.fork()
    assert twin.np_random is not env.np_random
    here, there = env.step("right"), twin.step("left")
    assert here[4]["state_key"] != there[4]["state_key"]
    env.close()
    assert twin.step("right")[4]["turn"] == 3
    assert twin.arguments == env.arguments
    fresh = make_remote().unwrapped.fork()
    fresh.reset(seed=1)
    assert fresh.step("left")[4]["turn"] == 1
