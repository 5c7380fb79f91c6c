"""Environments as tools of the Model Context Protocol, called by the protocol's own client."""

import subprocess
import sys

import gymnasium as gym
import pytest
from adapter_peers import PYTHON, ROOT, peer
from ports import free_port

import agentgyms
from agentgyms.adapters.messages import image_urls
from agentgyms.core.outcome import for_agents
from agentgyms.core.serialization import encode_info
from agentgyms.recording import recorder
from agentgyms.registration import env_class
from env_servers import Server, create_app

CORRIDOR, ALFWORLD = "agentgyms/Corridor-v0", "agentgyms/ALFWorld-v0"
PICTURES = "agentgyms/VisualSokoban-v0"
EPISODE = {"episode": "$episode"}


def over_http(folder, *command, **asked):
    address = f"127.0.0.1:{free_port()}"
    return {
        "command": [*command, "--http", address],
        "url": f"http://{address}/mcp",
        "folder": str(folder),
        **asked,
    }


def expert_episode(env_id, seed, **kwargs):
    """Return an expert's calls of tools, and what each turn shows and tells."""
    env, tools = gym.make(env_id, **kwargs), env_class(env_id).tools
    expert = agentgyms.expert(env)
    observation, info = env.reset(seed=seed)
    calls, told, over = [], [(observation, {"info": encode_info(for_agents(info))})], False
    while not over:
        action = expert(observation, info)
        calls.append(tools.call(action))
        observation, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        turn = {"reward": reward, "terminated": terminated, "truncated": truncated}
        told.append((observation, {**turn, "info": encode_info(for_agents(info))}))
    env.close()
    return calls, told


def agrees(results, told):
    assert len(results) == len(told)
    for result, (observation, turn) in zip(results, told, strict=True):
        assert not result["error"]
        seen = {key: value for key, value in result["told"].items() if key != "episode"}
        assert seen == turn
        text, *pictures = result["content"]
        words = observation if isinstance(observation, str) else observation["text"]
        assert words in text["text"]
        assert [f"data:image/png;base64,{p['data']}" for p in pictures] == list(
            image_urls(observation).values()
        )
    assert told[-1][1]["info"]["success"]
    assert results[-1]["content"][0]["text"].endswith("The episode is over: success")


@pytest.mark.adapters
def test_experts_win_by_tools_as_they_do_by_actions(tmp_path):
    """By standard input, and over HTTP in both ages of the protocol; recordings replay."""
    house = expert_episode(ALFWORLD, 5, split="valid_seen")
    command = [ALFWORLD, "--set", "split=valid_seen", "--record", "episodes"]
    calls = [[call.name, dict(call.arguments)] for call in house[0]]
    asked = [
        {"command": command, "folder": str(tmp_path), "calls": [["reset", {"seed": 5}], *calls]}
    ]
    played = [house]
    for env_id, mode in ((PICTURES, "auto"), (CORRIDOR, "legacy")):
        played.append(expert_episode(env_id, 7))
        calls = [[call.name, {**call.arguments, **EPISODE}] for call in played[-1][0]]
        calls = [["reset", {"seed": 7}], *calls]
        command = [env_id, "--record", "episodes"]
        asked.append({**over_http(tmp_path, *command, calls=calls), "mode": mode})
    got = peer("mcp_peer.py", asked)
    for one, (_, told) in zip(got, played, strict=True):
        agrees(one["results"], told)
    recordings = [recorder.read(path) for path in (tmp_path / "episodes").iterdir()]
    assert len(recordings) == len(asked)
    assert sum(recorder.replay(one) for (one,) in recordings) == sum(len(g["results"]) for g in got)


@pytest.mark.adapters
def test_what_is_wrong_with_a_call_is_told_and_takes_no_turn(tmp_path):
    calls = [
        ["walk", {"direction": "left"}],
        ["reset", {"seed": -1}],
        ["reset", {"task_id": "train/none-999"}],
        ["reset", {"speed": 3}],
        ["reset", {"seed": 3}],
        ["fly", {}],
        ["walk", {}],
        ["walk", {"direction": "up"}],
        ["walk", {"direction": "right"}],
        ["end_episode", {}],
        ["walk", {"direction": "right"}],
    ]
    wrong = [
        "no episode is open: it ended, or call `reset` first",
        "seed must be an integer of 0 or more, got -1",
        "train/none-999",
        "reset has no argument 'speed': expected seed, task_id",
        "",
        "there is no tool 'fly': expected one of walk, take_key, open_door",
        "walk lacks its argument direction",
        "the argument direction must be one of left, right, got 'up'",
        "",
        "",
        "no episode is open",
    ]
    named = [[name, given if name == "reset" else given | EPISODE] for name, given in calls]
    asked = [
        {"command": [CORRIDOR], "folder": str(tmp_path), "calls": calls},
        over_http(tmp_path, CORRIDOR, calls=named),
    ]
    local, remote = peer("mcp_peer.py", asked)
    for results in (local["results"], remote["results"]):
        assert results[8]["told"]["info"]["turn"] == 1
        assert [result["error"] for result in results] == [bool(words) for words in wrong]
    for result, words in zip(local["results"], wrong, strict=True):
        assert words in result["content"][0]["text"]
    (last,) = remote["results"][-1]["content"]
    assert last["text"].startswith("error: no episode '")


@pytest.mark.adapters
def test_a_session_that_somebody_has_begun_is_played_and_stays(tmp_path):
    with Server(create_app(CORRIDOR, token="", split="train")) as server:
        owner = gym.make(CORRIDOR, url=server.url)
        owner.reset(seed=3)
        lease = owner.unwrapped.lease
        at = f"{server.url}/v1/sessions/{lease.session_id}"
        calls = [["reset", {}], ["end_episode", {}], ["walk", {"direction": "right"}]]
        asked = {"command": [CORRIDOR, "--session", at], "folder": str(tmp_path)}
        first, second = peer("mcp_peer.py", [{**asked, "calls": calls}, {**asked, "calls": calls}])
        state = lease.endpoint.call("GET", f"/v1/sessions/{lease.session_id}")
        owner.close()
    assert [tool["name"] for tool in first["tools"]] == ["walk", "take_key", "open_door"]
    for number, one in enumerate((first, second), start=1):
        assert [result["error"] for result in one["results"]] == [True, True, False]
        assert one["results"][-1]["told"]["info"]["turn"] == number
    assert (state["turn"], state["episode"]) == (2, 1)


@pytest.mark.adapters
def test_two_episodes_of_one_server_do_not_meet_and_one_tool_takes_any_action(tmp_path):
    """The environment may itself be on a server of environments."""
    with Server(create_app(CORRIDOR, token="")) as server:
        command = [CORRIDOR, "--text", "--set", f"url={server.url}"]
        steps = [["reset", {"seed": 3}], ["step", {"action": "right"} | EPISODE]]
        (got,) = peer(
            "mcp_peer.py", [over_http(tmp_path, *command, calls=[*steps, *steps, steps[1]])]
        )
    assert [tool["name"] for tool in got["tools"]] == ["reset", "step", "end_episode"]
    assert got["tools"][1]["input_schema"]["required"] == ["episode", "action"]
    first, one, second, same, two = [result["told"] for result in got["results"]]
    assert first["episode"] != second["episode"]
    assert first["info"] == second["info"]
    assert one == same
    assert two["info"]["turn"] == 2


def test_an_address_that_is_none_is_told_in_one_line():
    command = [sys.executable, "-m", "agentgyms", "mcp", "Corridor", "--http", "8400"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: --http must be HOST:PORT, such as 127.0.0.1:8400, got '8400'\n"


@pytest.mark.adapters
def test_beyond_this_machine_it_wants_a_token():
    command = [PYTHON, "-m", "agentgyms", "mcp", "Corridor", "--http", "0.0.0.0:8400"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr == (
        "error: 0.0.0.0 can be reached from other machines, and there is no token: set "
        "AGENTGYMS_MCP_TOKEN, or listen on 127.0.0.1\n"
    )
