"""The pictures of RL4VLM's games: they show what the text says, and nothing else."""

import hashlib
import itertools
import random

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadOption
from agentgyms.envs.games import pictures
from agentgyms.envs.games.pictures import Canvas
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app

GAMES = ("Blackjack", "EZPoints", "NumberLine", "Points24")


def make(name, **kwargs):
    return gym.make(f"agentgyms/{name}-v0", **kwargs)


def picture(game, state):
    canvas = Canvas()
    game.paint(canvas, state)
    return canvas.image()


def visited(name, episodes=12):
    """Yield a game in each state of random episodes, moves that are not legal among them."""
    rng = random.Random(0)
    for split in ("train", "valid_unseen"):
        game = make(name, split=split).unwrapped
        for seed in range(episodes):
            game.reset(seed=seed)
            yield game
            over = False
            while not over:
                *_, terminated, truncated, _ = game.step(rng.choice(game.words))
                over = terminated or truncated
                yield game


@pytest.mark.parametrize("name", GAMES)
def test_pictures_are_equal_where_texts_are_and_differ_where_they_do(name):
    """So nothing shows that the text hides, such as the dealer's card or a natural."""
    by_text, by_picture = {}, {}
    for game in visited(name):
        text, image = game.text(game.position), game.draw()
        shown = image.tobytes()
        assert by_text.setdefault(text, shown) == shown, text
        assert by_picture.setdefault(shown, text) == text
        assert (image.shape, image.dtype) == (pictures.SHAPE, np.uint8)
    assert len(by_text) > 20


def test_the_dealers_hidden_card_and_a_natural_do_not_show():
    game = make("Blackjack").unwrapped
    game.reset(options={"task_id": next(iter(game.tasks))})
    shown = game.board[2]
    covered = picture(game, (21 - 10, True, True, 0))
    assert np.array_equal(covered, picture(game, (21 - 10, True, False, 0)))
    game.board = (7, 9, shown)  # another hand of the player's with the same total
    assert np.array_equal(covered, picture(game, (21 - 10, True, False, 0)))
    results = [picture(game, (20, False, False, result)).tobytes() for result in range(17, 23)]
    assert len({*results, covered.tobytes()}) == 7


def test_long_formulas_and_numbers_are_inside_the_picture():
    points, line = make("Points24").unwrapped, make("NumberLine", size=500).unwrapped
    points.reset(seed=0)
    points.board = (("10", "J", "Q", "K"), (10, 11, 12, 13), 24)
    formula = ("10", "11", "12", "13", *["+"] * 17, "=")
    seen = {picture(points, formula[:length]).tobytes() for length in range(len(formula) + 1)}
    assert len(seen) == len(formula) + 1
    line.reset(seed=0)
    line.board = (1000, 1, 1000)
    assert picture(line, 999).tobytes() != picture(line, 998).tobytes()
    with pytest.raises(ValueError, match="leaves the picture"):
        Canvas().write("12345678", 0, 0, 3)
    with pytest.raises(ValueError, match="'!' has no glyph"):
        Canvas().write("!", 0, 0)


def test_glyphs_differ():
    for one, two in itertools.combinations(pictures._GLYPHS, 2):
        assert (pictures._dots(one) != pictures._dots(two)).sum() >= 2, (one, two)


def test_the_pictures_stay_as_they_are():
    """Agents see every pixel: other ones are another environment."""
    drawn = hashlib.blake2b(digest_size=8)
    for name in GAMES:
        env = make(name, pictures=True)
        drawn.update(env.reset(seed=3)[0]["image"].tobytes())
        drawn.update(env.step(env.unwrapped.words[0])[0]["image"].tobytes())
    assert drawn.hexdigest() == "f406428e798c8592"


@pytest.mark.parametrize("name", GAMES)
def test_the_observation_is_the_picture_in_place_of_the_text(name):
    env, plain = make(name, pictures=True), make(name)
    assert env.observation_space == Dict(
        text=env.observation_space["text"], image=Box(0, 255, (192, 256, 3), np.uint8)
    )
    (seen, info), (read, other) = env.reset(seed=5), plain.reset(seed=5)
    action = info["admissible_actions"][0]
    for _ in range(2):
        assert seen in env.observation_space
        assert seen["text"] == env.unwrapped.caption
        assert np.array_equal(seen["image"], env.unwrapped.draw())
        assert read == plain.unwrapped.text(plain.unwrapped.position)
        assert info.pop("observation_key") != other.pop("observation_key")
        assert info == other
        seen["image"][:] = 0  # what callers do with it stays with them
        seen, *first, info = env.step(action)
        read, *second, other = plain.step(action)
        assert first == second


@pytest.mark.parametrize("name", GAMES)
def test_render_shows_text_and_picture_with_either_observation(name):
    for shown in (False, True):
        for mode in ("ansi", "rgb_array"):
            env = make(name, pictures=shown, render_mode=mode)
            env.reset(seed=1)
            env.step(env.unwrapped.words[0])
            game = env.unwrapped
            expected = game.text(game.position) if mode == "ansi" else game.draw()
            assert np.array_equal(env.render(), expected)
    assert env.metadata["render_modes"] == ["ansi", "rgb_array"]
    with pytest.raises(BadOption, match="pictures must be True or False, got 1"):
        make(name, pictures=1)


@pytest.mark.parametrize("name", GAMES)
def test_pictures_keep_the_contract_here_and_behind_a_server(name):
    def local(**kwargs):
        return make(name, split="valid_seen", pictures=True, **kwargs)

    testing.check_env(local)
    testing.check_leaks(lambda: local(render_mode="ansi"))
    testing.check_determinism(local)
    testing.check_snapshot(local)
    testing.check_group(
        lambda: agentgyms.make_group(f"agentgyms/{name}-v0", 3, split="valid_seen", pictures=True)
    )
    env_id = f"agentgyms/{name}-v0"
    with Server(create_app(env_id, token="", split="valid_seen")) as server:
        there = {"url": server.url, "pictures": True}
        testing.check_remote_parity(local, lambda: RemoteEnv(env_id, **there))
        here, remote = (
            local(render_mode="rgb_array"),
            RemoteEnv(env_id, **there, render_mode="rgb_array"),
        )
        here.reset(seed=2)
        remote.reset(seed=2)
        assert np.array_equal(here.render(), remote.render())
        remote.close()
