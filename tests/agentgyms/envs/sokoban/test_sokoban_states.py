"""Groups share a room; snapshots and forks go on as the original does."""

import gymnasium as gym
import pytest
from snapshot_damage import damaged

import agentgyms
from agentgyms.core.errors import BadSnapshot
from agentgyms.envs.sokoban.engine import WORDS, State

ENV_ID = "agentgyms/Sokoban-v0"


def make(**kwargs):
    return gym.make(ENV_ID, **kwargs).unwrapped


def started(task_id=None, **kwargs):
    env = make(**kwargs)
    env.reset(seed=0, options={"task_id": task_id})
    return env


def test_a_group_shares_one_room_and_plays_apart():
    with agentgyms.make_group(ENV_ID, 8, boxes=2, rooms=100) as group:
        observations, infos = group.reset(seed=5)
        rooms = [env._state.room for env in group.envs]
        assert all(room is rooms[0] for room in rooms)
        assert len({id(env._state) for env in group.envs}) == 8
        assert len(set(observations)) == 1
        words = infos[0]["admissible_actions"]
        actions = [words[i % len(words)] if i < 4 else None for i in range(8)]
        results = group.step(actions)
        for env, action, result in zip(group.envs, actions, results, strict=True):
            expected = State(rooms[0])
            expected.step(WORDS.index(action) + 1 if action else 0)
            assert (env._state.boxes, env._state.player) == (expected.boxes, expected.player)
            assert (result is None) == (action is None)


def test_rooms_are_shared_between_environments():
    first, second = (
        started("train/6x6-1-2f19-00003"),
        started("train/6x6-1-2f19-00003", text_format="gem"),
    )
    assert first._state.room is second._state.room


def test_restored_and_forked_episodes_go_on_equally():
    env = started("train/6x6-1-2f19-00042", oracle=True)
    env.step("junk")
    for word in ("up", "left", "down"):
        env.step(word)
    snapshot = env.snapshot()
    other = make(oracle=True)
    assert other.restore(snapshot)[1]["turn"] == 4
    twins = [env.fork(), other, env]
    for word in ("right", "right", "still", "up", "left"):
        results = [twin.step(word) for twin in twins]
        assert results[0] == results[1] == results[2]


def test_rewards_after_a_restore_count_from_the_restored_state(level):
    env = level("########\n#@$. $.#\n########\n")
    env.step("right")
    snapshot = env.snapshot()
    assert env.step("right")[1] == pytest.approx(-1.1)
    env.restore(snapshot)
    assert env.step("right")[1] == pytest.approx(-1.1)
    assert env.fork().step("left")[1] == pytest.approx(-0.1)


DAMAGES = [
    [], ["", 0], ["0", 8], ["ff", 8], ["-1", 8], ["xyz", 8], [5, 8], ["{boxes}"],
    ["{boxes}", -1], ["{boxes}", True], ["{boxes}", "8"], ["{boxes}", None], ["{boxes}", 8.0],
    ["{boxes}", 0], ["{boxes}", 10**30], ["{boxes}", [8]], "{boxes}", 7, {"boxes": 1}, True,
    ["f" * 5000, 8], ["{boxes}", "{wall}"], ["{boxes}", "{box}"], ["{other}", "{player}"],
    ["0", "{player}"], ["{many}", "{player}"],
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_a_damaged_engine_state_is_refused(damage):
    env = started("train/6x6-1-2f19-00007")
    room, state = env._state.room, env._state
    names = {
        "{boxes}": f"{state.boxes:x}",
        "{wall}": room.cell(0, 0),
        "{box}": state.boxes.bit_length() - 1,
        "{other}": f"{room.floor:x}",
        "{many}": f"{room.floor & ~(1 << state.player):x}",
        "{player}": state.player,
    }

    def filled(value):
        if isinstance(value, list):
            return [filled(item) for item in value]
        return names.get(value, value) if isinstance(value, str) else value

    snapshot = env.snapshot()
    bad = damaged(snapshot, ("engine",), filled(damage))
    with pytest.raises(BadSnapshot):
        env.restore(bad)
    assert env.restore(snapshot)[1]["turn"] == 0


def test_snapshots_of_other_rooms_are_refused():
    env = started()
    for arguments in ({"boxes": 2}, {"size": 7}, {"difficulty": (4, 9)}, {"text_format": "gem"}):
        with pytest.raises(BadSnapshot, match="but this is"):
            make(**arguments).restore(env.snapshot())
