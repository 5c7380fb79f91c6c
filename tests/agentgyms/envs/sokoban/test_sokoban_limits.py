"""No argument makes a room's generator run on for ever, here or on a server."""

import gymnasium as gym
import pytest

from agentgyms.core.deadlines import time_limit
from agentgyms.core.errors import BadOption
from agentgyms.envs.sokoban import sources
from env_servers.sessions import env_factory
from env_servers.sessions.env_factory import EnvFactory

ENV_ID = "agentgyms/Sokoban-v0"


def make(**kwargs):
    return gym.make(ENV_ID, **kwargs).unwrapped


@pytest.mark.parametrize("peer", ["verl_agent", "ragen", "gym_sokoban"])
def test_a_peers_room_has_at_most_so_many_cells_and_boxes(peer):
    with pytest.raises(BadOption, match="boxes=20 in 2304 cells .* at most 1 boxes in a room"):
        make(compat_seed=True, peer=peer, size=[50, 50], boxes=20)
    make(compat_seed=True, peer=peer, size=[50, 50], boxes=1)
    make(compat_seed=True, peer=peer, size=[20, 20], boxes=8)


def test_a_peers_search_is_given_up_after_so_many_states(monkeypatch):
    monkeypatch.setattr(sources, "_STATES_TRIED", 1000)
    env = make(compat_seed=True, size=12, boxes=9)
    with pytest.raises(BadOption, match=r"makes no room of 12 x 12 cells .* from \d seeds, 5 and"):
        env.reset(options={"task_id": "seed-5"})


def test_boxes_that_can_be_placed_in_too_many_ways():
    arguments = {"size": 10, "boxes": 60, "walls": 0.0, "max_turns": 2, "difficulty": [1, 2]}
    with pytest.raises(BadOption, match="boxes=60 in 64 cells can be placed in 635376 ways"):
        make(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"rooms": 3, "walls": 0.31},
        {"rooms": 3, "size": 10, "boxes": 4},  # random reverse play
        {"compat_seed": True, "size": 12, "boxes": 9},
    ],
)
def test_generators_obey_a_time_limit(arguments):
    env = make(**arguments)
    with time_limit(-1), pytest.raises(BadOption, match="rooms? .*takes more than .* ask for less"):
        env.reset(seed=70_005)


def test_clients_arguments_are_limited_in_time(monkeypatch):
    monkeypatch.setattr(env_factory, "WORK_LIMIT_S", -1.0)
    factory = EnvFactory(ENV_ID, {"rooms": 7, "walls": 0.32})
    assert len(factory.make().tasks) == 7, "the server's own arguments are not"
    assert len(factory.make({"split": "sample", "max_turns": 20}).tasks) == 7
    limited = factory.make({"rooms": 8})
    for env in (limited, limited.fork()):
        with pytest.raises(BadOption, match="start the server with these arguments"):
            env.reset(seed=1)
    with pytest.raises(BadOption, match="generating"):
        factory.make({"rooms": 9, "split": "valid"}).tasks  # noqa: B018


def test_a_snapshot_is_restored_within_the_limit():
    env = make(compat_seed=True, size=12, boxes=3)
    env.reset(options={"task_id": "seed-3"})
    snapshot = env.snapshot()
    other = make(compat_seed=True, size=12, boxes=3)
    other.work_limit_s = -1.0
    sources.load_room.cache_clear()
    with pytest.raises(BadOption, match="takes more than"):
        other.restore(snapshot)
