"""How rooms are shown: text and pictures, in observations and in `render`."""

import hashlib
import itertools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

import agentgyms
from agentgyms import testing
from agentgyms.core import images
from agentgyms.core.errors import BadOption
from agentgyms.envs.sokoban import image, text
from agentgyms.envs.sokoban.engine import (
    BOX,
    BOX_ON_TARGET,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    TARGET,
    WALL,
    State,
    room_of_tiles,
    tiles_of,
)
from agentgyms.envs.sokoban.text import FORMATS

SOKOBAN, VISUAL = "agentgyms/Sokoban-v0", "agentgyms/VisualSokoban-v0"
ALL_TILES = [[0, 0, 0, 0], [0, 1, 6, 0], [2, 3, 4, 0], [1, 4, 2, 0], [0, 0, 0, 0]]


def states():
    """States with every tile, one room before and after a step among them."""
    first = State(room_of_tiles(ALL_TILES))
    second = State(first.room)
    second.step(3)
    other = State(room_of_tiles([[1, 5, 3, 4, 2], [0, 1, 2, 1, 0]]))
    return [first, second, other]


# --- recorded -------------------------------------------------------------------------------------


@pytest.mark.data
def test_recorded_texts_and_tiny_pictures(recorded):
    cases = recorded("render.json")
    assert cases
    for case in cases:
        state = State(room_of_tiles(case["room_state"], case["room_fixed"]))
        assert FORMATS["verl_agent"](state) == case["verl_agent_text"]
        assert FORMATS["grid"](state) == case["ragen_grid"]
        assert FORMATS["gem"](state) == case["gem_board"]
        assert image.draw_tiny(state).tolist() == case["tiny"]
        assert list(image.draw(state).shape) == case["rgb_shape"]


# --- tiles ----------------------------------------------------------------------------------------


def test_tiny_pictures_have_gym_sokobans_colours_and_scale():
    state = states()[0]
    colours = image.draw_tiny(state)
    assert colours[0, 0].tolist() == [0, 0, 0]
    assert colours[1, 2].tolist() == [219, 212, 56]
    assert colours[2].tolist() == [[254, 126, 125], [254, 95, 56], [142, 121, 56], [0, 0, 0]]
    large = image.draw_tiny(state, 3)
    assert large.shape == (15, 12, 3)
    assert np.array_equal(large[1::3, 1::3], colours)
    assert np.array_equal(large[2::3, ::3], colours)


def test_all_tiles_differ_clearly():
    atlas = image.atlas().astype(int)
    assert atlas.shape == (7, 16, 16, 3)
    for first, second in itertools.combinations(range(7), 2):
        difference = np.abs(atlas[first] - atlas[second]).mean()
        assert difference > 20, (first, second, difference)
    for first in (PLAYER, PLAYER_ON_TARGET):
        for second in (WALL, FLOOR, TARGET, BOX, BOX_ON_TARGET):
            assert np.abs(atlas[first] - atlas[second]).mean() > 40


def test_the_tiles_are_those_that_agents_have_been_trained_on():
    """Agents see every pixel: other tiles are another environment."""
    digest = hashlib.blake2b(image.atlas().tobytes(), digest_size=8).hexdigest()
    assert digest == "7f30f691d6b326cc"


def test_the_legend_names_what_is_seen():
    atlas = image.atlas().astype(int)
    red, green, blue = (atlas[..., i] for i in range(3))
    reddish = ((red > 190) & (green < 90) & (blue < 90)).sum(axis=(1, 2))
    assert reddish[TARGET] > 30
    assert reddish[PLAYER_ON_TARGET] > 8
    assert not reddish[[WALL, FLOOR, BOX, BOX_ON_TARGET, PLAYER]].any()
    greenish = ((green > red + 30) & (green > blue + 30)).sum(axis=(1, 2))
    assert greenish[BOX_ON_TARGET] > 80
    assert not np.delete(greenish, BOX_ON_TARGET).any()
    bluish = ((blue > red + 60) & (blue > green + 60)).sum(axis=(1, 2))
    assert min(bluish[PLAYER], bluish[PLAYER_ON_TARGET]) > 30
    for words in ("brick", "slab", "red diamond", "wooden crate", "green crate", "blue shirt"):
        assert words in image.LEGEND


# --- pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [16, 32, 48, 160, 256])
def test_every_cell_shows_its_tile(side):
    atlas = image.atlas().repeat(side // 16, axis=1).repeat(side // 16, axis=2)
    for state in states():
        rows = tiles_of(state)
        picture = image.draw(state, side)
        assert picture.shape == (len(rows) * side, len(rows[0]) * side, 3)
        assert picture.dtype == np.uint8
        for r, row in enumerate(rows):
            for c, tile in enumerate(row):
                cell = picture[r * side : (r + 1) * side, c * side : (c + 1) * side]
                assert np.array_equal(cell, atlas[tile]), (r, c, tile)


def test_a_picture_is_the_callers_own():
    state = states()[0]
    first = image.draw(state, 32)
    expected = first.copy()
    first[:] = 77
    assert np.array_equal(image.draw(state, 32), expected)
    assert first.flags.writeable
    assert first.flags.c_contiguous
    tiny = image.draw_tiny(state)
    tiny[:] = 1
    assert image.draw_tiny(state)[0, 0].tolist() == [0, 0, 0]
    image.atlas()[:] = 0
    assert np.array_equal(image.draw(state, 32), expected)


def test_the_default_is_one_tile_a_cell():
    state = states()[0]
    assert np.array_equal(image.draw(state), image.draw(state, image.SIDE))


def test_different_states_look_different():
    seen = {image.draw(state).tobytes() for state in states()}
    assert len(seen) == 3


# --- the environments -----------------------------------------------------------------------------


def make(env_id, **kwargs):
    return gym.make(env_id, rooms=40, **kwargs)


def test_the_visual_observation():
    env = make(VISUAL)
    assert env.observation_space == Dict(
        text=env.observation_space["text"], image=Box(0, 255, (288, 288, 3), np.uint8)
    )
    observation, info = env.reset(seed=3)
    assert observation in env.observation_space
    assert np.array_equal(observation["image"], image.draw(env.unwrapped._state, 48))
    assert "X" not in observation["text"]
    assert observation["text"] == "The picture shows the room from above."
    moved = env.step(info["admissible_actions"][0])[0]
    assert moved in env.observation_space
    assert not np.array_equal(moved["image"], observation["image"])
    assert np.array_equal(moved["image"], image.draw(env.unwrapped._state, 48))


@pytest.mark.parametrize("text_format", list(FORMATS))
def test_the_grid_beside_the_picture(text_format):
    env = make(VISUAL, grid=True, text_format=text_format)
    plain = make(SOKOBAN, text_format=text_format)
    caption, _, grid = env.reset(seed=5)[0]["text"].partition("\n")
    assert caption == "The picture shows the room from above."
    assert grid == plain.reset(seed=5)[0]


@pytest.mark.parametrize(
    ("size", "cell_pixels", "shape"),
    [(6, 16, (96, 96, 3)), ((5, 9), 32, (160, 288, 3)), ([9, 5], 64, (576, 320, 3))],
)
def test_the_size_of_the_picture(size, cell_pixels, shape):
    env = make(VISUAL, size=size, cell_pixels=cell_pixels)
    observation, _ = env.reset(seed=0)
    assert observation["image"].shape == env.observation_space["image"].shape == shape
    assert observation in env.observation_space
    assert images.decode_png(images.encode_png(observation["image"])).shape == shape


def test_pictures_of_the_peers_rooms():
    env = gym.make(VISUAL, compat_seed=True, size=(7, 8), cell_pixels=16)
    assert env.reset(seed=4)[0]["image"].shape == (112, 128, 3)


def test_what_callers_do_with_an_observation_stays_with_them():
    env = make(VISUAL, render_mode="rgb_array")
    observation, _ = env.reset(seed=2)
    expected = observation["image"].copy()
    snapshot = env.unwrapped.snapshot()
    observation["image"][:] = 0
    env.render()[:] = 1
    assert np.array_equal(env.unwrapped.restore(snapshot)[0]["image"], expected)
    assert np.array_equal(env.reset(seed=2)[0]["image"], expected)
    assert np.array_equal(env.render(), expected)


def test_both_environments_play_the_same_games():
    plain, visual = make(SOKOBAN, oracle=True), make(VISUAL, oracle=True)
    for seed in range(5):
        (_, one), (_, two) = plain.reset(seed=seed), visual.reset(seed=seed)
        for action in ("up", "junk", "left", "down", "right", "right"):
            for info in (one, two):
                info.pop("observation_key")
            assert one == two
            first, second = plain.step(action), visual.step(action)
            assert first[1:4] == second[1:4]
            if first[2] or first[3]:
                break
            one, two = first[4], second[4]


@pytest.mark.parametrize(("env_id", "side"), [(SOKOBAN, 48), (VISUAL, 32)])
def test_rgb_render(env_id, side):
    arguments = {"cell_pixels": side} if env_id == VISUAL else {}
    env = make(env_id, render_mode="rgb_array", **arguments)
    env.reset(seed=1)
    for action in ("up", "left", "?"):
        env.step(action)
        picture = env.render()
        assert np.array_equal(picture, image.draw(env.unwrapped._state, side))
    assert make(env_id).metadata["render_modes"] == ["ansi", "rgb_array"]


def test_text_render():
    env = make(SOKOBAN, render_mode="ansi")
    observation, _ = env.reset(seed=1)
    assert env.render() == observation
    env = make(VISUAL, render_mode="ansi")
    env.reset(seed=1)
    assert env.render() == make(SOKOBAN, text_format="legend").reset(seed=1)[0]
    with pytest.raises(BadOption, match="expected None or ansi, rgb_array"):
        make(SOKOBAN, render_mode="tiny_rgb_array").reset(seed=0)


# --- the contract ---------------------------------------------------------------------------------

KINDS = {
    "text": (SOKOBAN, {}),
    "lenient": (SOKOBAN, {"lenient": True, "boxes": 2, "size": (6, 7), "text_format": "gem"}),
    "peer": (SOKOBAN, {"compat_seed": True, "rooms": None}),
    "pictures": (VISUAL, {"cell_pixels": 16}),
    "pictures-grid": (VISUAL, {"cell_pixels": 16, "grid": True, "oracle": True}),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def test_the_environment_keeps_the_contract(kind):
    env_id, kwargs = kind
    testing.check_env(lambda: gym.make(env_id, **{"rooms": 40, **kwargs}))
    testing.check_leaks(lambda: gym.make(env_id, **{"rooms": 40, **kwargs}))


def test_determinism_and_snapshots(kind):
    env_id, kwargs = kind
    testing.check_determinism(lambda: gym.make(env_id, **{"rooms": 40, **kwargs}))
    testing.check_snapshot(lambda: gym.make(env_id, **{"rooms": 40, **kwargs}))


def test_groups(kind):
    env_id, kwargs = kind
    testing.check_group(lambda: agentgyms.make_group(env_id, 4, **{"rooms": 40, **kwargs}))


@pytest.mark.parametrize(("env_id", "kwargs"), [(SOKOBAN, {}), (VISUAL, {"cell_pixels": 16})])
def test_vectors(env_id, kwargs):
    testing.check_vector(env_id, num_envs=3, rooms=40, **kwargs)


def test_every_tile_has_its_character():
    assert set(FORMATS) == {"legend", "grid", "verl_agent", "gem"}
    shown = [text.grid(state).split("\n") for state in states()]
    assert shown[0] == ["####", "#_S#", "O√X#", "_XO#", "####"]
    assert shown[1] == ["####", "#PO#", "O√X#", "_XO#", "####"]
    assert shown[2] == ["_P√XO", "#_O_#"]
