"""Environments for TRL: their tools, what a row of the dataset starts, the reward."""

import inspect
import json

import gymnasium as gym
import numpy as np
import pytest
from transformers.utils import get_json_schema

import agentgyms
from agentgyms.adapters.messages import tools_of
from agentgyms.adapters.trl import _described, _played, demonstrations, environment_factory
from agentgyms.core.errors import BadOption, EnvUnavailable
from agentgyms.core.tools import BadCall, Tool, ToolCall, Tools

ENVS = ["ALFWorld", "Corridor", "Sokoban", "SearchQA", "SOTOPIA", "Tau2", "AppWorld", "WebShop"]


@pytest.mark.parametrize("env_id", ENVS)
def test_transformers_reads_the_tools_that_the_environment_declares(env_id):
    player = environment_factory(env_id)()
    names = [name for name, _ in inspect.getmembers(type(player), inspect.isfunction)]
    own = [name for name in names if name in {tool.name for tool in player._tools}]
    described = [get_json_schema(getattr(player, name)) for name in own]
    # in TRL's order, too, for a model reads it as text
    assert json.dumps(described) == json.dumps(_described(tools_of(env_id, {})))


def by_tools(player, actions):
    """Take actions by the tools that stand for them; return what each answered."""
    calls = [player._tools.call(action) for action in actions]
    return [getattr(player, call.name)(**call.arguments) for call in calls]


def test_an_experts_episode_by_tools_has_its_return():
    player = environment_factory("ALFWorld", split="valid_seen")()
    env = gym.make("agentgyms/ALFWorld-v0", split="valid_seen")
    expert = agentgyms.expert(env)
    for seed in (3, 4):  # an environment is used again
        observation, info = env.reset(seed=seed)
        first = player.reset(seed=seed, prompt=[])
        assert first.startswith(f"Your task: {info['goal']}\n\n{observation}\n\nActions that work")
        actions, total, over = [], 0.0, False
        while not over:
            actions.append(expert(observation, info))
            observation, reward, terminated, truncated, info = env.step(actions[-1])
            total, over = total + reward, terminated or truncated
        assert player.get_reward() == 0.0
        assert by_tools(player, actions)[-1].endswith("The episode is over: success")
        assert player.get_reward() == total == 1.0
        assert player.recording.actions == actions
        assert player.recording.turns[-1].info["state_key"] == info["state_key"]
        with pytest.raises(BadCall, match="the episode is over"):
            player.look()
    player.reset(seed=0, task_id=info["task_id"])
    assert player.recording.turns[0].info["task_id"] == info["task_id"]
    with pytest.raises(BadOption, match="no `seed`"):
        player.reset(prompt=[])


def test_a_demonstration_is_what_the_model_would_have_seen_and_said():
    player = environment_factory("Corridor", split="train")()
    prompt = [{"role": "system", "content": "Walk."}, {"role": "user", "content": "Now: "}]
    system, asked, *turns, closing = _played(player, {"prompt": prompt, "seed": 3}, 0.0)
    actions, own = player.recording.actions, environment_factory("Corridor", split="train")()
    assert (system, asked["content"]) == (prompt[0], f"Now: {own.reset(seed=3)}")
    calls = [one["tool_calls"][0]["function"] for one in turns[::2]]
    said = [own._tools.action(ToolCall(c["name"], c["arguments"])) for c in calls]
    assert said == actions
    assert [one["content"] for one in turns[1::2]] == by_tools(own, actions)
    assert player.get_reward() == 1.0
    assert (closing["role"], "tool_calls" in closing) == ("assistant", False)
    seeing = environment_factory("VisualSokoban", split="train")()
    with pytest.raises(BadOption, match="shows pictures"):
        _played(seeing, {"prompt": prompt, "seed": 0}, 0.0)


def test_an_expert_that_errs_makes_calls_that_work():
    player = environment_factory("Corridor", split="train")()
    row = {"prompt": [{"role": "user", "content": ""}], "seed": 3}
    played = []
    for noise in (0.0, 0.5, 0.5):
        _played(player, row, noise)
        turns = player.recording.turns
        works = [turn.info["admissible_actions"] for turn in turns]
        assert all(act in able for act, able in zip(player.recording.actions, works, strict=False))
        played.append(player.recording.actions)
    assert played[0] != played[1] == played[2]
    with pytest.raises(BadOption, match=r"\[0, 1\), got 1.0"):
        demonstrations(type(player), [row], noise=1.0)
    coding = environment_factory("AppWorld", split="train")()
    with pytest.raises(BadOption, match="lists none here"):
        _played(coding, row, 0.5)


def test_a_wrong_call_is_an_error_and_no_turn():
    player = environment_factory("ALFWorld")()
    player.reset(seed=0)
    with pytest.raises(BadCall, match="go_to lacks its argument receptacle"):
        player.go_to()
    assert "[inadmissible]" in player.go_to(receptacle="moon 1")
    assert len(player.recording.turns) == 2


def test_an_environment_that_fails_gives_no_reward(monkeypatch):
    player = environment_factory("Corridor")()
    player.reset(seed=0)

    def lost(action):
        raise EnvUnavailable("the server is gone")

    monkeypatch.setattr(player._env, "step", lost)
    for _ in range(2):
        with pytest.raises((EnvUnavailable, BadCall), match="the server is gone"):
            player.take_key()
    assert player.get_reward() is None
    monkeypatch.undo()
    player.reset(seed=0)
    assert player.get_reward() == 0.0


def test_pictures_are_blocks_of_the_message():
    player = environment_factory("VisualSokoban")()
    picture, text = player.reset(seed=0)
    seen = player.recording.turns[0].observation["image"]
    assert (np.asarray(picture["image"]) == seen).all()
    assert text["text"].startswith("Your task: ")


def test_a_tool_that_trl_would_take_for_its_own_is_refused(monkeypatch):
    cls = agentgyms.registration.env_class("agentgyms/Corridor-v0")
    monkeypatch.setattr(cls, "tools", Tools(Tool("reset", "Go back.", "reset")))
    with pytest.raises(BadOption, match="native=False"):
        environment_factory("Corridor")
    assert "seed" not in environment_factory("Corridor", native=False)().reset(seed=0)
