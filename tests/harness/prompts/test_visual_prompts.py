"""The prompts with pictures: where the image goes, and whether the words fit it."""

import gymnasium as gym
import pytest

import agentgyms
from agentgyms.envs.sokoban.image import LEGEND
from harness import prompts
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.rollouts.agent import Agent
from harness.rollouts.views import EpisodeView
from harness.types.errors import ConfigError
from harness.types.messages import images_of, text_and_image, texts_of

VISUAL = "agentgyms/VisualSokoban-v0"


@pytest.fixture(scope="module")
def view():
    env = gym.make(VISUAL, rooms=20)
    observation, info = env.reset(seed=0)
    text, image = text_and_image(observation)
    return EpisodeView(text, text, info, env.unwrapped.max_turns, image=image)


def messages(style, view):
    agent = Agent(ScriptedCompleter(lambda _: ""), prompts.load(style, VISUAL), Sampling(), 0)
    return agent.messages(view)


def test_the_think_prompt_shows_the_room_and_explains_the_picture(view):
    asked = messages("think", view)
    assert images_of(asked) == (view.image,)
    assert view.image.pixels.shape == (288, 288, 3)
    (text,) = texts_of(asked)
    for tile in LEGEND.split("; "):
        assert f"- {tile}\n" in text, "the words of agentgyms.envs.sokoban.image.LEGEND"
    for said in ("Push the box onto the target.", "move 1 of at most 15", "<think>", "<action>"):
        assert said in text
    style = prompts.load("think", VISUAL)
    assert (style.name, style.parser, style.shows_image) == (
        "visualsokoban/think",
        "sokoban_tags",
        True,
    )


def test_the_compact_prompt_to_the_letter(view):
    (message,) = messages("compact", view)
    assert message == {
        "role": "user",
        "content": [{"type": "image", "image": view.image}, {"type": "text", "text": "move 1 >"}],
    }


def test_what_the_parsers_read_moves_the_player():
    env = gym.make(VISUAL, rooms=20, oracle=True)
    observation, info = env.reset(seed=0)
    expert = agentgyms.expert(env)
    style = prompts.load("think", VISUAL)
    over = False
    while not over:
        action, valid = style.parse(style.answer(expert(observation, info)))
        observation, _, over, truncated, info = env.step(action)
        assert valid
        assert info["action_key"] == action
        assert not truncated
    assert info["success"]


def test_a_style_with_an_image_needs_one(view):
    blind = EpisodeView(view.observation, view.observation, view.info, 15)
    with pytest.raises(
        ConfigError, match="visualsokoban/think shows an image, but the environment"
    ):
        messages("think", blind)


@pytest.mark.parametrize("name", ["Blackjack", "EZPoints", "NumberLine", "Points24"])
@pytest.mark.parametrize("kind", ["see", "look"])
def test_games_are_seen_in_pictures_alone(name, kind):
    env_id = f"agentgyms/{name}-v0"
    env = gym.make(env_id, pictures=True)
    observation, info = env.reset(seed=3)
    text, image = text_and_image(observation)
    seen = EpisodeView(text, text, info, env.unwrapped.max_turns, image=image)
    style = prompts.load(kind, env_id)
    agent = Agent(ScriptedCompleter(lambda _: ""), style, Sampling(), 0)
    asked = agent.messages(seen)
    assert images_of(asked) == (image,)
    (said,) = texts_of(asked)
    assert info["goal"] in said
    board = env.unwrapped.text(env.unwrapped.position)
    for line in board.splitlines():
        assert line not in said, "the picture alone shows it"
    if kind == "see":
        assert env.unwrapped.caption in said
        word = info["admissible_actions"][0]
        assert style.parse(f"<think>so</think><action>{word}</action>").action == word
    read = gym.make(env_id).reset(seed=3)[0]
    plain = EpisodeView(read, read, info, env.unwrapped.max_turns)
    with pytest.raises(ConfigError, match="shows an image, but the environment observes text"):
        agent.messages(plain)
