"""Environments as those of OpenEnv, of verifiers and as tools of MCP, by the real packages."""

import base64
import importlib
import re
import sys

import gymnasium as gym
import numpy as np
import pytest
from adapter_peers import ROOT, peer
from chat_server import ChatServer

import agentgyms
from agentgyms.adapters.messages import image_urls, parse_action, user_messages
from agentgyms.core import images, serialization
from agentgyms.core.imports import install
from agentgyms.core.outcome import for_agents
from env_servers import Server, create_app

CORRIDOR, ALFWORLD = "agentgyms/Corridor-v0", "agentgyms/ALFWorld-v0"
PICTURES = "agentgyms/VisualSokoban-v0"


@pytest.mark.parametrize("name", ["openenv", "verifiers", "mcp"])
def test_without_the_package_it_is_said_how_to_get_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"agentgyms.adapters.{name}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=re.escape(install(name))):
        importlib.import_module(f"agentgyms.adapters.{name}")


@pytest.mark.parametrize("name", ["openenv", "verifiers", "skyrl"])
def test_an_adapter_is_short(name):
    text = (ROOT / f"agentgyms/adapters/{name}.py").read_text()
    assert text.count("\n") < 170


def test_a_turn_is_a_message_and_a_reply_an_action():
    env = gym.make(CORRIDOR)
    observation, info = env.reset(seed=3)
    (message,) = user_messages(observation, info)
    assert message["content"] == (
        f"Your task: {info['goal']}\n\n{observation}\n\nActions that work now:\nleft\nright"
    )
    observation, *_, info = env.step("right")
    assert "Your task" not in user_messages(observation, info)[0]["content"]
    assert parse_action(" go north\n") == "go north"
    assert parse_action("<action>a</action> or rather <action> b\n</action>.") == "b"


def test_pictures_travel_as_data_urls():
    image = np.random.default_rng(0).integers(0, 255, (7, 5, 3), np.uint8)
    urls = image_urls({"text": "a room", "image": image})
    assert list(urls) == ["image"]
    kind, _, content = urls["image"].partition(",")
    assert kind == "data:image/png;base64"
    assert (images.decode_png(base64.b64decode(content)) == image).all()
    assert image_urls("only words") == {}


def expert_episode(env_id, seed, **kwargs):
    """Return the actions of an expert's episode and all that `reset` and `step` returned."""
    env = gym.make(env_id, **kwargs)
    expert = agentgyms.expert(env)
    observation, info = env.reset(seed=seed)
    actions, told, over = [], [(observation, None, False, False, info)], False
    while not over:
        actions.append(expert(observation, info))
        observation, reward, terminated, truncated, info = env.step(actions[-1])
        told.append((observation, reward, terminated, truncated, info))
        over = terminated or truncated
    env.close()
    return actions, told


@pytest.mark.adapters
def test_openenv_client_and_server_play_the_same_episodes():
    wanted = [(CORRIDOR, {}, 3), (ALFWORLD, {"split": "valid_seen"}, 5), (PICTURES, {}, 7)]
    played = [expert_episode(env_id, seed, **kwargs) for env_id, kwargs, seed in wanted]
    asked = [
        {"env_id": env_id, "kwargs": kwargs, "seed": seed, "actions": actions}
        for (env_id, kwargs, seed), (actions, _) in zip(wanted, played, strict=True)
    ]
    answers = peer("openenv_peer.py", asked)
    for (env_id, *_), (actions, told), got in zip(wanted, played, answers, strict=True):
        assert len(got["results"]) == len(told)
        for result, (observation, reward, terminated, truncated, info) in zip(
            got["results"], told, strict=True
        ):
            seen = result["observation"]
            text = observation if isinstance(observation, str) else observation["text"]
            assert seen["text"] == text
            assert seen["images"] == image_urls(observation)
            assert seen["info"] == serialization.encode_info(for_agents(info))
            assert (seen["terminated"], seen["truncated"]) == (terminated, truncated)
            assert result["reward"] == reward
            assert result["done"] == (terminated or truncated)
        last = told[-1][-1]
        assert last["success"]
        assert got["state"]["step_count"] == len(actions)
        assert got["state"]["state_key"] == last["state_key"]
        assert got["task_id"] == last["task_id"]
        assert "no such task" in got["refused"]
        assert got["schema"]["action"]["required"] == ["action"]
        assert got["metadata"]["name"] == env_id
        assert got["metadata"]["description"].endswith(".")
        assert got["checked"]["passed"], got["checked"]


def script_of(episodes):
    """Return a model that takes the experts' actions, told apart by what it saw first."""

    def answer(messages):
        first = messages[1]["content"]
        first = first if isinstance(first, str) else first[0]["text"]
        (actions,) = [a for a, told in episodes if _text(told[0][0]) in first] or [None]
        if actions is None:
            return {"content": None, "usage": {}}  # malformed, which verifiers reports
        said = sum(message["role"] == "assistant" for message in messages)
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
        return {"content": f"I think.\n<action>{actions[said]}</action>", "usage": usage}

    return answer


def _text(observation):
    return observation if isinstance(observation, str) else observation["text"]


@pytest.mark.adapters
def test_verifiers_plays_tasks_to_their_return():
    """What fails there is an error and no reward."""
    episodes = [expert_episode(CORRIDOR, 0), expert_episode(PICTURES, 0)]
    with (
        Server(create_app(CORRIDOR, token="")) as corridor,
        ChatServer(script_of(episodes)) as model,
    ):
        where = [{"env_id": CORRIDOR, "kwargs": {"url": corridor.url}}, {"env_id": PICTURES}]
        runs = [
            {"settings": settings, "task": told[0][-1]["task_id"]}
            for settings, (_, told) in zip(where, episodes, strict=True)
        ]
        lost = {"settings": {"env_id": CORRIDOR}, "task": "train/free-000"}
        *played, failed = peer("verifiers_peer.py", {"url": model.url, "runs": [*runs, lost]})
    assert not failed["ok"]
    assert failed["errors"]
    assert failed["rewards"] == {}
    for got, (actions, told) in zip(played, episodes, strict=True):
        assert got["ok"], got["errors"]
        assert got["rewards"] == {"episode_return": pytest.approx(sum(t[1] or 0 for t in told))}
        assert got["metrics"] == {
            "success": 1.0,
            "score": told[-1][-1]["score"],
            "turns": len(actions),
        }
        system, *turns = got["messages"]
        assert system["role"] == "system"
        assert len(turns) == 2 * len(actions)
        for seen, (observation, *_, info) in zip(turns[::2], told, strict=False):
            content = seen["content"]
            text = content if isinstance(content, str) else content[0]["text"]
            assert _text(observation) in text
            assert "\n".join(info["admissible_actions"]) in text
            urls = [] if isinstance(content, str) else [p["image_url"]["url"] for p in content[1:]]
            assert urls == list(image_urls(observation).values())
