"""The peers' rooms: against recorded ones, a digest of many, and how seeds become episodes."""

import random
from hashlib import sha256

import gymnasium as gym
import numpy as np
import pytest
from sokoban_oracles import grid_text, read, search, write

import agentgyms
from agentgyms.core.errors import BadOption, UnknownTask
from agentgyms.envs.sokoban.engine import State, tiles_of
from agentgyms.envs.sokoban.peer_rooms import PEERS, NoRoom, Peer, generate

ENV_ID = "agentgyms/Sokoban-v0"


def make(**kwargs):
    return gym.make(ENV_ID, compat_seed=True, **kwargs).unwrapped


def peer_of(case):
    if case["generator"] == "gym":
        return PEERS["gym_sokoban"]
    return Peer(depth=case["search_depth"], walks=True)


def recorded_tiles(case):
    """Return the whole room: gym-sokoban writes a player over the target that it stands on."""
    layout, position = read(case["room_state"], case["room_fixed"])
    return write(layout, position, *case["dim"])


@pytest.mark.data
def test_every_recorded_room(recorded):
    cases = recorded("rooms.json")
    assert cases
    for case in cases:
        shape, boxes, seed = tuple(case["dim"]), case["num_boxes"], case["seed"]
        where = (case["generator"], shape, boxes, seed)
        if "error" in case:
            with pytest.raises(NoRoom):
                generate(shape, boxes, seed, peer_of(case))
            continue
        tiles = tiles_of(State(generate(shape, boxes, seed, peer_of(case))))
        assert tiles == recorded_tiles(case), where
        assert [[t == 0 for t in row] for row in tiles] == [
            [t == 0 for t in row] for row in case["room_fixed"]
        ], where


@pytest.mark.data
def test_recorded_rooms_through_the_environment(recorded):
    cases = [case for case in recorded("rooms.json") if "error" not in case]
    assert cases
    for case in cases:
        env = make(
            size=tuple(case["dim"]),
            boxes=case["num_boxes"],
            peer={"gym": "gym_sokoban", "va": "verl_agent"}[case["generator"]],
            search_depth=case["search_depth"],
            text_format="grid",
        )
        observation, info = env.reset(seed=case["seed"])
        assert info["task_id"] == f"seed-{case['seed']}"
        assert observation == grid_text(recorded_tiles(case)), info["task_id"]


@pytest.mark.parametrize(
    ("peer", "shape", "boxes", "seeds", "failures", "digest"),
    [
        ("verl_agent", (6, 6), 1, 300, 0, "7bdd87b9807d9b49"),
        ("verl_agent", (6, 6), 2, 150, 16, "d1aeeeaee57d0193"),
        ("verl_agent", (7, 9), 3, 60, 2, "cbd71ce6697359ba"),
        ("ragen", (6, 6), 1, 100, 0, "8504d015c740b514"),
        ("ragen", (6, 6), 2, 20, 4, "e2581863a0dba292"),
        ("gym_sokoban", (6, 6), 1, 100, 0, "7390e2805a3da60e"),
        ("gym_sokoban", (6, 6), 2, 20, 4, "b59e652d7757151d"),
    ],
)
def test_the_rooms_stay_what_they_are(peer, shape, boxes, seeds, failures, digest):
    h, failed = sha256(), 0
    for seed in range(seeds):
        try:
            rows = tiles_of(State(generate(shape, boxes, seed, PEERS[peer])))
        except NoRoom as e:
            rows, failed = [str(e)], failed + 1
        h.update(repr((seed, rows)).encode())
    assert (failed, h.hexdigest()[:16]) == (failures, digest)


def test_the_global_generators_are_neither_asked_nor_touched():
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002 (the one to leave alone)
    first = generate((6, 6), 1, 5, PEERS["verl_agent"])
    random.random()
    assert generate((6, 6), 1, 5, PEERS["verl_agent"]) == first
    random.setstate(before[0])
    generate((6, 6), 1, 6, PEERS["verl_agent"])
    assert (random.getstate(), repr(np.random.get_state())) == before  # noqa: NPY002


@pytest.mark.parametrize("peer", PEERS)
def test_every_room_can_be_solved(peer):
    for seed in range(40):
        try:
            room = generate((6, 6), 2, seed, PEERS[peer])
        except NoRoom:
            continue
        layout, position = read(tiles_of(State(room)))
        assert len(position.boxes) == len(layout.targets) == 2
        assert not position.boxes & layout.targets
        assert search(layout, position) > 0


# --- the environment ----------------------------------------------------------------------------


def room_of(env):
    return env._state.room


def test_a_seed_plays_its_own_room():
    env = make()
    for seed in (0, 1, 17, 65534):
        assert env.reset(seed=seed)[1]["task_id"] == f"seed-{seed}"
        assert room_of(env) == generate((6, 6), 1, seed, PEERS["verl_agent"])


def first_rooms(**kwargs):
    env, rooms = make(split="sample", boxes=2, **kwargs), []
    for task_id in env.tasks:
        env.reset(options={"task_id": task_id})
        rooms.append(room_of(env))
    return tuple(rooms)


def test_the_default_peer_is_verl_agent_and_others_differ():
    rooms = {peer: first_rooms(peer=peer) for peer in (None, *PEERS)}
    assert rooms[None] == rooms["verl_agent"]
    assert len(set(rooms.values())) == 3


def test_the_search_depth_changes_rooms():
    rooms = {depth: first_rooms(search_depth=depth) for depth in (None, 6, 10, 30, 300)}
    assert rooms[None] == rooms[30]
    assert rooms[300] == first_rooms(peer="ragen")
    assert len(set(rooms.values())) == 4


def test_a_seed_without_a_room_plays_the_next_that_has_one():
    expected, failing = {}, []
    for seed in range(25, 0, -1):
        try:
            expected[seed] = generate((6, 6), 2, seed, PEERS["verl_agent"])
        except NoRoom:
            expected[seed] = expected[seed + 1]
            failing.append(seed)
    assert {8, 9} <= set(failing), "two in a row"
    env = make(boxes=2)
    for seed, room in expected.items():
        _, info = env.reset(seed=seed)
        assert info["task_id"] == f"seed-{seed}"
        assert room_of(env) == room


@pytest.mark.parametrize(
    ("split", "first", "last"), [("valid", 65536, 66535), ("test", 66536, 67535)]
)
def test_splits_are_ranges_of_seeds(split, first, last):
    env = make(split=split)
    assert list(env.tasks) == [f"seed-{seed}" for seed in range(first, last + 1)]
    for seed in (first, last):
        assert env.reset(seed=seed)[1]["task_id"] == f"seed-{seed}"
    for seed in (0, first - 1, last + 1, 2**31, 2**70):
        assert env.reset(seed=seed)[1]["task_id"] in env.tasks
    with pytest.raises(UnknownTask):
        env.reset(options={"task_id": "seed-5"})


def test_seeds_outside_of_the_split_draw_from_it():
    drawn = {make().reset(seed=seed)[1]["task_id"] for seed in range(65535, 65555)}
    assert len(drawn) == 20
    assert all(int(task_id.removeprefix("seed-")) < 65535 for task_id in drawn)


def test_a_given_task_is_stronger_than_the_seed():
    env = make()
    assert env.reset(seed=3, options={"task_id": "seed-9"})[1]["task_id"] == "seed-9"


@pytest.mark.parametrize("arguments", [{"size": (4, 5), "boxes": 4}, {"size": 6, "boxes": 14}])
def test_a_peer_that_never_makes_such_a_room(arguments):
    with pytest.raises(BadOption, match=f"no room of .* with boxes={arguments['boxes']}"):
        make(**arguments).reset(seed=0)


def test_a_group_plays_the_seeds_room():
    with agentgyms.make_group(ENV_ID, 3, compat_seed=True) as group:
        _, infos = group.reset(seed=12)
        assert [info["task_id"] for info in infos] == ["seed-12"] * 3


def test_valid_and_test_play_every_greater_seed():
    env = make(split="valid")
    assert (len(env.tasks), env.tasks[0]) == (1000, "seed-65536")
    for seed in (65536, 70_000, 3_000_000_000, 2**32 - 1):
        _, info = env.reset(seed=seed)
        assert info["task_id"] == f"seed-{seed}"
        assert env.reset(options={"task_id": f"seed-{seed}"})[1]["state_key"] == info["state_key"]
        assert f"seed-{seed}" in env.tasks
    assert room_of(env) == generate((6, 6), 1, 2**32 - 1, PEERS["verl_agent"])
    twin = env.fork()
    assert twin.snapshot() == env.snapshot()
    assert env.reset(seed=5)[1]["task_id"] in list(env.tasks), "of train: drawn from the list"
    for wrong in ("seed-5", f"seed-{2**32}", "seed-070000", "seed-", "seed-٧٠٠٠٠", "70000", "x"):
        assert wrong not in env.tasks
        with pytest.raises(UnknownTask):
            env.reset(options={"task_id": wrong})
    assert make(split="test").tasks[0] == "seed-66536"
    assert make(split="train").reset(seed=70_000)[1]["task_id"] in make(split="train").tasks
