"""Environments with images keep the contract: vectors, snapshots, rendering and recordings."""

import base64
import json

import gymnasium as gym
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import RenderCollection
from picture_corridor import PICTURES, PictureCorridor, ReplayedPictures

import agentgyms
from agentgyms import testing
from agentgyms.cli.main import main
from agentgyms.core import images, keys
from agentgyms.core.errors import BadOption, BadSnapshot, DataCorrupt, ReplayMismatch
from agentgyms.core.outcome import MAX_OBSERVATION, equal_observations, shown
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.recording import recorder


def make(**kwargs):
    return gym.make(PICTURES, **kwargs)


@pytest.mark.parametrize("make", [make, ReplayedPictures])
def test_pictures_keep_the_contract(make):
    testing.check_env(make)
    testing.check_determinism(make)
    testing.check_snapshot(make)


def test_pictures_in_groups_and_vectors():
    testing.check_group(lambda: agentgyms.make_group(PICTURES, 4))
    testing.check_vector(PICTURES, num_envs=3)


class Reusing(PictureCorridor):
    """Draws every turn from the fifth on into the same array."""

    canvas, drawn = None, 0

    def begin(self, task, rng):
        self.drawn = 0
        return super().begin(task, rng)

    def draw(self):
        image = super().draw()
        self.drawn += 1
        if self.canvas is None or self.drawn < 5:
            self.canvas = image
        self.canvas[:] = image
        return self.canvas


class Noisy(PictureCorridor):
    """Draws one pixel by chance."""

    def draw(self):
        image = super().draw()
        image[0, 0, 0] = np.random.default_rng().integers(256)
        return image


class Wide(PictureCorridor):
    """Draws images that are not in its space."""

    def draw(self):
        return np.repeat(super().draw(), 40, axis=1)


@pytest.mark.parametrize(
    ("world", "check", "message"),
    [
        (Reusing, testing.check_env, "each turn needs arrays of its own"),
        (Noisy, testing.check_determinism, "differs from"),
        (Wide, testing.check_env, "not within the observation space"),
    ],
)
def test_the_contract_tests_can_fail_on_pictures(world, check, message):
    with pytest.raises(AssertionError, match=message) as caught:
        check(world)
    assert len(str(caught.value)) < 3000


def test_messages_show_arrays_by_their_keys():
    with pytest.raises(AssertionError, match=r"differs from") as caught:
        testing.assert_equal_episodes(Noisy(), Noisy(), 1)
    assert "<uint8 [8, 64, 3], key " in str(caught.value)
    assert "[[" not in str(caught.value)
    image = np.zeros((2, 2, 3), np.uint8)
    assert shown([("a", image)]).startswith("[('a', <uint8 [2, 2, 3], key ")
    assert shown({"a": [1, None]}) == "{'a': [1, None]}"


@pytest.mark.parametrize("kind", [AsyncVectorEnv, SyncVectorEnv])
@pytest.mark.parametrize("copied", [True, False])
def test_vectors_show_the_picture_of_every_turn(kind, copied):
    vector, singles = kind([make] * 3, copy=copied), [make() for _ in range(3)]
    seen, _ = vector.reset(seed=[1, 2, 3])
    first = seen
    state = [env.reset(seed=seed)[0] for seed, env in enumerate(singles, 1)]
    begun = np.stack([one["image"] for one in state])
    for turn in range(4):
        assert tuple(seen["text"]) == tuple(one["text"] for one in state)
        assert np.array_equal(seen["image"], np.stack([one["image"] for one in state])), turn
        seen, *_ = vector.step(["right"] * 3)
        state = [env.step("right")[0] for env in singles]
    assert np.array_equal(first["image"], begun) is copied
    vector.close()


def test_a_key_is_of_all_parts():
    env = PictureCorridor()
    observation, info = env.reset(seed=1)
    assert info["observation_key"] == keys.observation_key(observation)
    changed = {**observation, "image": observation["image"].copy()}
    assert equal_observations(changed, observation)
    changed["image"][0, 0, 0] ^= 1
    assert not equal_observations(changed, observation)
    assert not equal_observations(observation["text"], observation)


def test_keys_are_those_of_earlier_recordings():
    assert keys.observation_key("a") == "27c35e6e9373877f29e562464e46497e"
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    observation = {"text": "a", "image": image}
    assert keys.observation_key(observation) == "ec470c57072fcecdd49f6922ee640dbe"
    parts = ("corridor", [1, True, None, "é\ud800"], {"b": 1.5, "a": []})
    assert keys.state_key(*parts) == "68964f2731e657600dfbb6676dcdfc3a"


def test_long_texts_beside_pictures_are_cut():
    class Talkative(PictureCorridor):
        def _here(self):
            return "x" * 2 * MAX_OBSERVATION

    observation, info = Talkative().reset(seed=1)
    assert len(observation["text"]) <= MAX_OBSERVATION
    assert observation["text"].endswith("characters left out ...]")
    assert info["observation_key"] == keys.observation_key(observation)
    assert observation["image"].any()


def damaged(snapshot, change):
    fields = json.loads(snapshot)
    change(fields["observation"])
    return json.dumps(fields).encode()


def replaced(image):
    encoded = base64.b64encode(images.encode_png(image)).decode()
    return lambda observation: observation.update(image={"png": encoded})


def cut(observation):
    observation["image"]["png"] = observation["image"]["png"][:-8]


@pytest.mark.parametrize("world", [PictureCorridor, ReplayedPictures])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut, "damaged.*'image' is no image: .*damaged"),
        (replaced(np.zeros((8, 64, 3), np.uint8)), "damaged.*another key"),
        (lambda seen: seen.update(image="text"), "damaged.*another key"),
        (lambda seen: seen.update(text="else"), "damaged.*another key"),
        (lambda seen: seen.pop("image"), "damaged.*another key"),
        (lambda seen: seen.update(image={"png": 3}), "damaged.*not base64"),
        (lambda seen: seen.clear(), "damaged.*without parts"),
    ],
)
def test_damaged_pictures_in_snapshots_are_refused_and_spare_the_episode(world, change, message):
    env = world()
    env.reset(seed=1)
    env.step("right")
    with pytest.raises(BadSnapshot, match=message):
        env.restore(damaged(env.snapshot(), change))
    assert env.step("right")[4]["turn"] == 2


def test_replay_compares_pictures():
    class Repainted(ReplayedPictures):
        def draw(self):
            return super().draw() + np.uint8(1)

    env, other = ReplayedPictures(), Repainted()
    Repainted.__name__ = "ReplayedPictures"
    env.reset(seed=1)
    env.step("right")
    with pytest.raises(ReplayMismatch, match="another version"):
        other.restore(env.snapshot())


def test_a_class_that_draws_offers_images():
    assert CorridorEnv.metadata["render_modes"] == ["ansi"]
    assert PictureCorridor.metadata["render_modes"] == ["ansi", "rgb_array"]
    assert ReplayedPictures.metadata["render_modes"] == ["ansi", "rgb_array"]
    with pytest.raises(BadOption, match="'rgb_array' is unknown: expected None or ansi"):
        CorridorEnv(render_mode="rgb_array")
    assert not hasattr(CorridorEnv, "draw")


def test_what_is_rendered():
    env = make(render_mode="rgb_array")
    assert env.unwrapped.render() is None
    observation, _ = env.reset(seed=1)
    for _ in range(3):
        shown = env.render()
        assert np.array_equal(shown, observation["image"])
        shown[:] = 0  # it is the caller's own
        observation = env.step("right")[0]
    text = make(render_mode="ansi")
    assert text.reset(seed=1)[0]["text"] == text.render()
    assert PictureCorridor().render() is None


def test_wrappers_collect_the_frames():
    env = RenderCollection(make(render_mode="rgb_array"))
    seen = [env.reset(seed=1)[0], *(env.step("right")[0] for _ in range(3))]
    frames = env.render()
    assert [frame.shape for frame in frames] == [(8, 64, 3)] * 4
    assert all(np.array_equal(frame, one["image"]) for frame, one in zip(frames, seen, strict=True))


def test_videos_are_recorded(tmp_path):
    pytest.importorskip("moviepy", reason="Gymnasium's RecordVideo needs moviepy")
    env = gym.wrappers.RecordVideo(make(render_mode="rgb_array"), str(tmp_path / "videos"))
    env.reset(seed=1)
    env.step("right")
    assert [frame.shape for frame in env.recorded_frames] == [(8, 64, 3)] * 2
    env.close()
    assert [file.suffix for file in (tmp_path / "videos").iterdir() if file.stat().st_size] == [
        ".mp4"
    ]


def invoke(*arguments, **kwargs):
    result = CliRunner().invoke(main, arguments, catch_exceptions=False, **kwargs)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("policy", ["expert", "random"])
def test_recorded_and_replayed_by_the_command_line(tmp_path, policy):
    file = tmp_path / "episodes.jsonl"
    invoke("record", PICTURES, str(file), "--policy", policy, "--episodes", "3")
    assert "3 episodes" in invoke("replay", str(file))
    for line in file.read_text().splitlines():
        fields = json.loads(line)
        if "observation" in fields:
            png = base64.b64decode(fields["observation"]["image"]["png"])
            assert png.startswith(b"\x89PNG")


def test_played_by_a_person(tmp_path):
    file = tmp_path / "mine.jsonl"
    output = invoke(
        "play", PICTURES, "--seed", "1", "--record", str(file), input="right\ndance\nleft\n"
    )
    assert "corridor" in output
    assert "[malformed] unknown command" in output
    assert "png" not in output
    assert "1 episodes, 4 states" in invoke("replay", str(file))


@pytest.fixture
def lines(tmp_path):
    """The lines of a recorded episode."""
    env = recorder.RecordEpisodes(make(), tmp_path / "episodes.jsonl")
    env.reset(seed=1)
    for action in ("right", "dance", "right"):
        env.step(action)
    env.close()
    return (tmp_path / "episodes.jsonl").read_text().splitlines()


def test_replay_notices_another_picture(lines):
    fields = json.loads(lines[3])
    replaced(np.zeros((8, 64, 3), np.uint8))(fields["observation"])
    (episode,) = recorder.parse([*lines[:3], json.dumps(fields), lines[4]], "changed")
    with pytest.raises(ReplayMismatch, match="turn 2: observation was recorded as") as caught:
        recorder.replay(episode)
    assert str(caught.value).count("<uint8 [8, 64, 3], key ") == 2
    assert len(str(caught.value)) < 500


def test_damaged_pictures_in_recordings_are_named_with_their_line(lines):
    fields = json.loads(lines[3])
    cut(fields["observation"])
    with pytest.raises(DataCorrupt, match="line 4: .*'image' is no image: the PNG is damaged"):
        list(recorder.parse([*lines[:3], json.dumps(fields)], "changed"))
