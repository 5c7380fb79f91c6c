"""Chance: forks and members draw on their own where asked to, and everything can be repeated."""

import gymnasium as gym
import pytest
from gymnasium.error import ResetNeeded

import agentgyms
from agentgyms import errors
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app

LAKE = "agentgyms/FrozenLake-v0"


def walk(env, turns=6):
    """Return the states of a walk to and fro."""
    states = []
    for word in ("right", "left", "down", "up", "right", "left")[:turns]:
        *_, terminated, truncated, info = env.step(word)
        states.append(info["state_key"])
        if terminated or truncated:
            break
    return states


def begun(seed=0, **kwargs):
    env = gym.make(LAKE, **kwargs).unwrapped
    env.reset(seed=seed)
    return env


def test_a_fork_goes_on_as_its_original_until_it_redraws():
    env = begun()
    env.step("left")
    walks = set()
    for number in range(20):
        other, again = env.fork(), env.fork()
        other.redraw(number)
        again.redraw(number)
        walked = walk(other)
        assert walk(again) == walked
        walks.add(tuple(walked))
    assert len(walks) > 5
    assert walk(env.fork()) == walk(env)


def test_a_redrawn_episode_is_a_function_of_its_source_and_actions():
    env = begun(seed=3)
    env.redraw(7)
    taken = ["left", "right"]
    for action in taken:
        env.step(action)
    env.redraw(8)
    snapshot = env.snapshot()
    seed, options = env.episode_source
    assert options == {"chance": [[0, 7], [2, 8]]}
    repeated, restored = begun(), begun()
    repeated.reset(seed=seed, options=options)
    for action in taken:
        repeated.step(action)
    restored.restore(snapshot)
    walked = walk(env)
    assert walk(repeated) == walk(restored) == walked


def test_members_of_a_group_draw_on_their_own_and_begin_again_alike():
    with agentgyms.make_group(LAKE, 8) as group:
        group.reset(seed=1)
        walks = [walk(env) for env in group.envs]
        assert len(set(map(tuple, walks))) > 2
        group.begin_again(3)
        assert walk(group.envs[3]) == walks[3]
        group.reset(seed=1)
        assert [walk(env) for env in group.envs] == walks
    alone = begun(seed=1)
    assert walk(alone) == walks[0]


def test_remote_members_draw_as_local_ones_and_survive_a_lost_session():
    with agentgyms.make_group(LAKE, 4) as local:
        local.reset(seed=2)
        expected = [walk(env) for env in local.envs]
    with Server(create_app(LAKE, token="")) as server:
        with agentgyms.make_group(LAKE, 4, url=server.url) as group:
            group.reset(seed=2)
            group.envs[2].forget()  # as if its server had died
            assert [walk(env) for env in group.envs] == expected
        env = RemoteEnv(LAKE, url=server.url)
        assert env.stochastic
        env.reset(seed=4)
        twin = env.fork()
        twin.redraw(5)
        here = begun(seed=4)
        here.redraw(5)
        assert walk(twin) == walk(here)
        twin.close()
        env.close()


def test_without_chance_nothing_is_redrawn():
    env = begun(slippery=False)
    env.redraw(3)
    assert env.episode_source[1] == {}
    with pytest.raises(errors.BadOption, match="FrozenLakeEnv has no chance"):
        env.reset(options={"chance": [[0, 1]]})


@pytest.mark.parametrize("wrong", [3, [3], [[0]], [[0, -1]], [["a", 1]], [[0, True]], [[0, 2**63]]])
def test_a_wrong_option_is_named(wrong):
    with pytest.raises(errors.BadOption, match="list of pairs"):
        begun().reset(options={"chance": wrong})


def test_errors_of_redraw():
    with pytest.raises(ResetNeeded):
        gym.make(LAKE).unwrapped.redraw(1)
    with pytest.raises(errors.BadOption, match="-1"):
        begun().redraw(-1)
