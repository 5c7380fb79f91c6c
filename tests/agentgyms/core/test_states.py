"""States are given from environment to environment in one process: exact, checked, and apart."""

import copy
import json

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture_corridor import PICTURES, PictureCorridor

import agentgyms
from agentgyms.core import randomness, states
from agentgyms.core.errors import BadSnapshot, GroupMismatch, Mismatch
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.testing.playing import plain

CORRIDOR = "agentgyms/Corridor-v0"
IDS = [CORRIDOR, PICTURES, "agentgyms/ALFWorld-v0"]


@given(st.lists(st.integers(0, 2**200), min_size=1, max_size=6))
def test_seeded_generators_are_those_of_numpy(numbers):
    own, numpys = randomness.generator_of(*numbers), np.random.default_rng(list(numbers))
    assert own.bit_generator.state == numpys.bit_generator.state
    own_words, numpys_words = randomness.seeds_of(*numbers), np.random.SeedSequence(numbers)
    assert own_words.generate_state(2).tolist() == numpys_words.generate_state(2).tolist()


def test_seeds_are_not_negative():
    with pytest.raises(ValueError, match="from 0 on"):
        randomness.generator_of(3, -1)


@given(seed=st.integers(0, 2**64), drawn=st.integers(0, 5))
def test_copied_generators_draw_the_same_numbers(seed, drawn):
    original = np.random.default_rng(seed)
    original.integers(2**31, size=drawn, dtype=np.uint32)  # odd numbers leave half a word behind
    twin = randomness.copied(original)
    assert twin.bit_generator.state == original.bit_generator.state
    assert twin.integers(2**31, dtype=np.uint32) == original.integers(2**31, dtype=np.uint32)
    twin.random(7)
    assert twin.bit_generator.state != original.bit_generator.state, "they share their state"


def test_copied_generators_spawn_and_copy_like_others():
    original = np.random.default_rng(5)
    one, two = randomness.copied(original), randomness.copied(original)
    first, second = one.spawn(2)
    assert first.random() == two.spawn(1)[0].random() != second.random()
    assert copy.deepcopy(one).random() == one.random()
    other = np.random.Generator(np.random.MT19937(3))
    assert randomness.copied(other).random() == other.random()


@pytest.mark.parametrize("env_id", IDS)
def test_groups_start_where_snapshots_would(env_id):
    group = agentgyms.make_group(env_id, 3)
    alone = gym.make(env_id).unwrapped
    for seed in (3, None, 4):
        observations, infos = group.reset(seed=seed)
        first, *others = group.envs
        for i, member in enumerate(others, 1):
            assert plain(alone.restore(first.snapshot())) == plain((observations[i], infos[i]))
            assert member.snapshot() == alone.snapshot() == first.snapshot()
        futures = [plain([env.step("look"), env.reset()]) for env in group.envs]
        assert futures[0] == futures[1] == futures[2]
    group.close()


@pytest.mark.parametrize("env_id", IDS)
def test_members_of_one_process_get_no_snapshot(env_id, monkeypatch):
    group = agentgyms.make_group(env_id, 3)
    monkeypatch.setattr(
        "agentgyms.core.snapshots.pack", lambda *_: pytest.fail("a snapshot was made")
    )
    group.reset(seed=3)
    assert group.envs[0].fork().episode_source == group.envs[2].episode_source == (3, {})


@pytest.mark.parametrize("env_id", IDS)
def test_nothing_is_shared_between_members_forks_and_callers(env_id):
    group = agentgyms.make_group(env_id, 2)
    observations, infos = group.reset(seed=3, options={"task_id": group.envs[0].tasks[0]})
    envs = [*group.envs, group.envs[1].fork()]
    before = [env.snapshot() for env in envs]
    assert before[0] == before[1] == before[2]
    for observation, info in zip(observations, infos, strict=True):
        info["admissible_actions"].append("fly")
        info["metrics"]["x"] = 1.0
        if isinstance(observation, dict):
            observation["image"][:] = 7
            observation["text"] = "else"
    assert [env.snapshot() for env in envs] == before, "the caller holds the environments' own"
    for acting in range(3):
        others = [env.snapshot() for env in envs[acting + 1 :]]
        seen = envs[acting].step(envs[acting].tasks[0])[0]
        if isinstance(seen, dict):
            seen["image"][:] = 9
        envs[acting].np_random.random()
        assert [env.snapshot() for env in envs[acting + 1 :]] == others


class Nested(CorridorEnv):
    """Saves its own mutable containers, and plays with what it loaded."""

    def begin(self, task, rng):
        self.log = {"taken": [], "pair": (1, 2.5), "nothing": None}
        return super().begin(task, rng)

    def act(self, action):
        self.log["taken"].append(action)
        return super().act(action)

    def save(self):
        return [super().save(), getattr(self, "log", None)]

    def load(self, task, state):
        corridor, self.log = state
        super().load(task, corridor)


def test_engines_may_save_their_own_containers():
    env = Nested()
    env.reset(seed=1)
    twin = env.fork()
    assert twin.log == {"taken": [], "pair": [1, 2.5], "nothing": None}, "as JSON would have it"
    env.step("right")
    assert (env.log["taken"], twin.log["taken"]) == (["right"], [])
    twin.step("left")
    again = twin.fork()
    again.log["taken"].append("x")
    assert (env.log["taken"], twin.log["taken"]) == (["right"], ["left"])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    ).filter(lambda value: "inf" not in repr(value))
)
def test_states_are_copied_as_json_would(value):
    try:
        expected = json.loads(json.dumps(value, sort_keys=True))
    except TypeError:  # keys of several types have no order
        return
    given = copy.deepcopy(value)
    assert repr(states.json_copy(value)) == repr(expected) or states.json_copy(value) == expected
    assert value == given


class Forgetful(CorridorEnv):
    """Does not load what it saves."""

    def load(self, task, state):
        super().load(task, [*state[:2], 1, *state[3:]])


class Refusing(CorridorEnv):
    """Cannot load what it saves."""

    def load(self, task, state):
        raise ValueError("no")


def test_engines_that_do_not_load_what_they_save_are_noticed():
    env = Forgetful()
    env.reset(seed=1)
    with pytest.raises(Mismatch, match="Forgetful.load does not bring back what save returned"):
        env.fork()
    refusing = Refusing()
    refusing.reset(seed=1)
    with pytest.raises(BadSnapshot, match="no"):
        refusing.fork()


def test_a_group_names_the_member_whose_engine_does_not_load():
    group = agentgyms.make_group(CORRIDOR, 3)
    group.envs = [Forgetful() for _ in range(3)]
    with pytest.raises(GroupMismatch, match="member 1: Forgetful.load"):
        group.reset(seed=1)


def test_members_with_other_arguments_get_a_snapshot():
    group = agentgyms.make_group(CORRIDOR, 3)
    group.envs[1] = CorridorEnv(oracle=True, render_mode="ansi")
    group.envs[2] = CorridorEnv(split="valid_seen")
    with pytest.raises(BadSnapshot, match="but this is"):
        group.reset(seed=1)
    del group.envs[2]
    _, infos = group.reset(seed=1)
    assert json.loads(infos[1].pop("oracle"))["best"] == "right"
    assert infos[0] == infos[1]


def test_pictures_in_messages_are_not_printed_pixel_by_pixel():
    group = agentgyms.make_group(PICTURES, 2)

    class Other(PictureCorridor):
        def restore(self, snapshot):
            observation, info = super().restore(snapshot)
            return {**observation, "image": 0 * observation["image"]}, info | {
                "observation_key": "x"
            }

    group.envs[1] = Other()
    Other.__name__ = "PictureCorridor"
    with pytest.raises(GroupMismatch, match="member 1 observes") as caught:
        group.reset(seed=1)
    assert "<uint8 [8, 64, 3], key " in str(caught.value)
    assert len(str(caught.value)) < 500
