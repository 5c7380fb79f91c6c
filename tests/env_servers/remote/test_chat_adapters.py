"""Environments of inspect_ai, SkyRL, Tinker's cookbook and TorchRL, played by the real packages."""

import importlib
import math
import re
import sys
import sysconfig
from pathlib import Path

import gymnasium as gym
import pytest
from adapter_peers import peer

import agentgyms
from agentgyms.adapters.episodes import ChatEpisode
from agentgyms.adapters.messages import image_urls
from agentgyms.core.errors import BadOption, EnvUnavailable
from agentgyms.core.imports import install
from env_servers import Server, create_app

ALFWORLD, CORRIDOR = "agentgyms/ALFWorld-v0", "agentgyms/Corridor-v0"
PICTURES = "agentgyms/VisualSokoban-v0"


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("inspect_ai", "inspect_ai", "inspect"),
        ("skyrl", "skyrl_gym", "skyrl"),
        ("tinker", "tinker_cookbook", "tinker"),
        ("torchrl", "torchrl", "torchrl"),
    ],
)
def test_without_the_package_it_is_said_how_to_get_it(monkeypatch, module, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "chz", sys)  # the cookbook's own dependency
    monkeypatch.delitem(sys.modules, f"agentgyms.adapters.{module}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=re.escape(install(extra))):
        importlib.import_module(f"agentgyms.adapters.{module}")


def test_inspect_finds_the_task_by_its_name():
    (found,) = importlib.metadata.entry_points(group="inspect_ai", name="agentgyms")
    assert importlib.util.find_spec(found.value).name == "agentgyms.adapters.inspect_ai"


def expert_turns(env_id, seed, task_id=None, **kwargs):
    """Return an expert's actions, and text, pictures, reward and info of every state."""
    env = gym.make(env_id, **kwargs)
    expert = agentgyms.expert(env)
    observation, info = env.reset(seed=seed, options={"task_id": task_id} if task_id else None)
    actions, told, over = [], [(observation, 0.0, info)], False
    while not over:
        actions.append(expert(observation, info))
        observation, reward, terminated, truncated, info = env.step(actions[-1])
        told.append((observation, reward, info))
        over = terminated or truncated
    env.close()
    assert info["success"]
    return actions, told


def test_replies_play_an_episode():
    actions, told = expert_turns(CORRIDOR, 3)
    episode = ChatEpisode(gym.make(CORRIDOR))
    for _ in range(2):  # an environment is used again
        episode.reset(3)
        assert episode.text.startswith(f"Your task: {told[0][2]['goal']}\n\n{told[0][0]}\n\nAction")
        assert episode.figures == {"return": 0.0, "success": 0.0, "turns": 0.0, "score": 0.0}
        for action in actions:
            assert not episode.over
            episode.say(f"I think.\n<action>{action}</action>")
        assert episode.over
        assert episode.text.endswith("The episode is over: success")
        assert episode.info == told[-1][2]
        assert episode.figures == {
            "return": 1.0,
            "success": 1.0,
            "turns": len(actions),
            "score": told[-1][2]["score"],
        }
    episode.reset(0, told[0][2]["task_id"])
    assert episode.info["task_id"] == told[0][2]["task_id"]
    episode.say("dance")
    assert episode.text.endswith("[malformed] unknown command")
    episode.close()


class Unrated(gym.Wrapper):
    """An environment whose turns nobody rates."""

    def step(self, action):
        observation, _, *rest, info = self.env.step(action)
        return observation, math.nan, *rest, {**info, "score": math.nan}


def test_what_nobody_rated_is_no_reward_and_has_no_score():
    episode = ChatEpisode(Unrated(gym.make(CORRIDOR)))
    episode.reset(0)
    with pytest.raises(EnvUnavailable, match="was not rated"):
        episode.act("left")
    assert "score" not in episode.figures


def test_pictures_are_passed_on_or_refused():
    episode = ChatEpisode(gym.make(PICTURES))
    episode.reset(0)
    (url,) = episode.images
    assert url.startswith("data:image/png;base64,")
    with pytest.raises(BadOption, match="pictures"):
        ChatEpisode(gym.make(PICTURES), sees=False).reset(0)


def text_of(observation):
    return observation if isinstance(observation, str) else observation["text"]


@pytest.fixture
def metadata(tmp_path):
    """A folder with the metadata of this distribution, by which inspect_ai finds its tasks."""
    (info,) = Path(sysconfig.get_path("purelib")).glob("agentgyms-*.dist-info")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / info.name).symlink_to(info)
    return tmp_path / "metadata"


def known_episodes(env_id, seed, *, tasks, epochs):
    """Return an expert's turns of some tasks, by task and epoch."""
    ids = gym.make(env_id).unwrapped.tasks[:tasks]
    return {
        (task_id, epoch): expert_turns(env_id, seed + epoch - 1, task_id)
        for epoch in range(1, epochs + 1)
        for task_id in ids
    }


@pytest.mark.adapters
def test_inspect_evaluates_tasks_epochs_and_pictures(tmp_path, metadata):
    """With tools on a server, as text with pictures; and a model that only talks ends too."""
    known = [
        known_episodes(ALFWORLD, 5, tasks=2, epochs=2),
        known_episodes(PICTURES, 5, tasks=1, epochs=1),
    ]
    (said, seen), runs = known, []
    for episodes, native in ((said, True), (seen, False)):
        told = [[text_of(turns[0][0]), actions] for actions, turns in episodes.values()]
        samples = sorted({task_id for task_id, _ in episodes})
        epochs = max(epoch for _, epoch in episodes)
        task = {"env_id": ALFWORLD if native else PICTURES, "native": native, "seed": 5}
        runs.append({"task": task, "samples": samples, "epochs": epochs, "says": told})
    talks = {"task": {**runs[0]["task"], "max_turns": 3}, "samples": runs[0]["samples"][:1]}
    with Server(create_app(ALFWORLD, token="")) as server:
        runs[0]["task"]["url"] = server.url
        asked = [*runs, {**talks, "epochs": 1, "says": []}]
        unscored = {"env_id": "tests/WithoutScore-v0", "native": True, "max_turns": 2}
        asked.append({**asked[-1], "task": unscored, "samples": ["train/free-000"]})
        *got, talked, without = peer(
            "inspect_peer.py", {"folder": str(tmp_path), "runs": asked}, also=metadata
        )
    for episodes, played, run in zip(known, got, runs, strict=True):
        check_log(played, episodes, run["task"]["env_id"])
    (sample,) = talked["samples"]
    assert sample["score"]["outcome"] == {"success": 0.0, "return": 0.0, "score": 0.0, "turns": 3.0}
    assert [turn["feedback"] for turn in sample["turns"]] == ["malformed"] * 3
    assert without["samples"][0]["score"]["outcome"]["score"] is None
    assert without["means"] == {"success": 0.0, "return": 0.0, "score": None, "turns": 2.0}


def check_log(played, known, env_id):
    assert played["status"] == "success"
    assert played["metadata"]["env_id"] == env_id
    assert played["means"]["success"] == 1.0
    assert {(s["id"], s["epoch"]) for s in played["samples"]} == set(known)
    for sample in played["samples"]:
        actions, told = known[sample["id"], sample["epoch"]]
        assert sample["error"] is None
        last = told[-1][2]
        assert sample["score"]["outcome"] == {
            "success": 1.0,
            "return": pytest.approx(sum(reward for _, reward, _ in told)),
            "score": last["score"],
            "turns": len(actions),
        }
        assert sample["metadata"]["outcome"]["state_key"] == last["state_key"]
        assert [t["state_key"] for t in sample["turns"]] == [i["state_key"] for *_, i in told[1:]]
        assert [t["reward"] for t in sample["turns"]] == [reward for _, reward, _ in told[1:]]
        shown = [m for m in sample["messages"] if m["role"] in ("user", "tool")]
        for message, (observation, *_) in zip(shown, told, strict=True):
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            assert text_of(observation) in parts[0]["text"]
            urls = [part["image"] for part in parts[1:]]
            assert urls == list(image_urls(observation).values())


@pytest.mark.adapters
def test_skyrl_plays_the_same_episodes():
    actions, told = expert_turns(ALFWORLD, 5, split="valid_seen")
    replies = [f"I think.\n<action>{action}</action>" for action in actions]
    asked = {
        "env_id": "ALFWorld",
        "kwargs": {"split": "valid_seen"},
        "seed": 5,
        "replies": replies,
        "max_turns": 50,
    }
    whole, cut = peer("skyrl_peer.py", [asked, {**asked, "max_turns": 2}])
    assert [message["role"] for message in whole["chat"]] == ["system", "user"]
    assert told[0][0] in whole["chat"][1]["content"]
    assert [step["reward"] for step in whole["steps"]] == [reward for _, reward, _ in told[1:]]
    assert [step["done"] for step in whole["steps"]] == [*[False] * (len(actions) - 1), True]
    for step, (observation, _, info) in zip(whole["steps"], told[1:], strict=True):
        (message,) = step["observations"]
        assert message["role"] == "user"
        assert observation in message["content"]
        assert step["metadata"]["state_key"] == info["state_key"]
    figures = {"return": 1.0, "success": 1.0, "turns": len(actions), "score": 1.0}
    assert whole["metrics"] == whole["averaged"] == figures
    assert [step["done"] for step in cut["steps"]] == [False, True]
    assert cut["metrics"]["return"] == 0.0


@pytest.mark.adapters
def test_tinker_plays_groups_of_one_state():
    actions, told = expert_turns(CORRIDOR, 6)
    settings = {"env_id": "Corridor", "seed": 2, "num_batches": 3, "batch_size": 2, "group_size": 2}
    replies = [f"<action>{action}</action>" for action in actions] + ["<action>left</action>"] * 20
    asked = {"settings": settings, "batch": 2, "replies": replies}
    got = peer("tinker_peer.py", asked, also=sysconfig.get_path("purelib"))
    assert got["length"] == 3
    assert [group["seed"] for group in got["groups"]] == [6, 7]
    solved, other = got["groups"]
    assert solved["tags"] == ["Corridor"]
    assert solved["returns"] == [1.0, 1.0]
    for trajectory in solved["trajectories"]:
        assert [done for _, done, *_ in trajectory] == [*[False] * (len(actions) - 1), True]
        assert [reward for reward, *_ in trajectory] == [reward for _, reward, _ in told[1:]]
        keys = [logs["state_key"] for *_, logs in trajectory]
        assert keys == [info["state_key"] for *_, info in told[1:]]
        assert trajectory[-1][2]["turns"] == len(actions)
    assert told[-2][0] in solved["read"][-1]
    assert f"Assistant: {replies[0]}\n\nUser: {told[1][0]}" in solved["read"][-1]
    first, second = other["trajectories"]
    assert [logs for *_, logs in first] == [logs for *_, logs in second]


@pytest.mark.adapters
def test_torchrl_checks_environments_and_plays_the_same_episodes():
    known = {env_id: expert_turns(env_id, 6) for env_id in (CORRIDOR, PICTURES)}
    asked = [{"env_id": i, "seed": 6, "actions": actions} for i, (actions, _) in known.items()]
    got = peer("torchrl_peer.py", asked, also=sysconfig.get_path("purelib"))
    assert got["example"].endswith("open door: The door is open. (1.0)\n")
    for episode, (actions, told) in zip(got["episodes"], known.values(), strict=True):
        observations = [observation for observation, *_ in told]
        assert episode["texts"] == [text_of(one) for one in observations]
        seen = [one for one in observations if not isinstance(one, str)]
        assert episode["pictures"] == [int(one["image"].sum()) for one in seen]
        assert episode["rewards"] == pytest.approx([reward for _, reward, _ in told[1:]])
        assert episode["terminated"] == [*[False] * (len(actions) - 1), True]
