"""What the routes answer when all is well."""

from __future__ import annotations

import json
import math

import gymnasium as gym
import pytest
from server_faults import CORRIDOR, FAULTY, Api

import agentgyms
from agentgyms import testing
from agentgyms.core import serialization
from agentgyms.recording import recorder
from env_servers import create_app


def test_probes_and_figures_need_no_token():
    api = Api(create_app(CORRIDOR, token="secret"))
    assert api.get("/healthz") == (200, {"status": "ok"})
    assert api.get("/readyz") == (200, {"status": "ready"})
    assert api.get("/openapi.json")[0] == 200
    assert api.get("/metrics")[0] == 200


def test_info_describes_the_environment(api):
    status, info = api.get("/v1/info")
    assert status == 200
    assert (info["env_id"], info["agentgyms"]) == (CORRIDOR, agentgyms.__version__)
    assert info["environment"]["action_space"] == {"type": "UnicodeText", "max_length": 8192}
    assert info["environment"]["splits"] == ["train", "valid_seen", "valid_unseen", "sample"]
    assert info["limits"]["max_sessions"] == 256


def test_every_reply_names_the_protocol_and_its_time(api):
    api.get("/v1/info")
    assert api.response.headers["Agentgyms-Protocol"] == "1"
    name, duration = api.response.headers["Server-Timing"].split(";dur=")
    assert name == "app"
    assert 0 < float(duration) < 60_000


@pytest.mark.parametrize(
    ("query", "split", "count"), [("", "train", 40), ("?split=sample", "sample", 4)]
)
def test_tasks_of_a_split(api, query, split, count):
    status, reply = api.get(f"/v1/tasks{query}")
    assert (status, reply["split"], len(reply["tasks"])) == (200, split, count)
    local = gym.make(CORRIDOR, split=split).unwrapped.tasks
    assert reply["tasks"] == [[task_id, local.find(task_id).family] for task_id in local]


def test_an_episode_equals_the_local_one(api):
    path = api.open(split="valid_seen", oracle=True)
    env = gym.make(CORRIDOR, split="valid_seen", oracle=True)
    observation, info = env.reset(seed=3, options={"task_id": env.unwrapped.tasks[1]})
    status, reply = api.post(
        f"{path}/reset", {"seed": 3, "options": {"task_id": env.unwrapped.tasks[1]}}
    )
    assert (status, reply["observation"], reply["info"]) == (200, observation, info)
    for turn in range(1, 30):
        action = agentgyms.expert(env)()
        observation, reward, terminated, truncated, info = env.step(action)
        status, reply = api.step(path, action, turn)
        assert status == 200
        assert (reply["observation"], reply["reward"]) == (observation, reward)
        assert (reply["terminated"], reply["truncated"]) == (terminated, truncated)
        assert (reply["info"], reply["turn"]) == (info, turn)
        if terminated:
            break
    assert terminated
    assert api.get(path)[1]["terminated"] is True


def test_sessions_are_named_by_128_random_bits(api):
    names = {api.open().rpartition("/")[2] for _ in range(20)}
    assert len(names) == 20
    assert {len(name) for name in names} == {22}


def test_server_arguments_hold_unless_the_client_gives_its_own():
    api = Api(create_app(CORRIDOR, split="valid_seen", max_turns=3))
    assert api.get("/v1/info")[1]["environment"]["max_turns"] == 3
    status, reply = api.post("/v1/sessions", {"kwargs": {"max_turns": 5}})
    assert status == 201
    assert (reply["environment"]["split"], reply["environment"]["max_turns"]) == ("valid_seen", 5)


def test_a_registered_environment_of_somebody_else_can_be_served():
    api = Api(create_app(f"server_faults:{FAULTY}", folder="/srv"))
    assert api.get("/v1/info")[1]["env_id"] == FAULTY
    api.begun()


def test_an_empty_body_asks_for_nothing_special(api):
    status, opened = api.post("/v1/sessions")
    assert status == 201
    status, reply = api.post(f"/v1/sessions/{opened['session_id']}/reset")
    assert (status, reply["turn"]) == (200, 0)


def test_snapshot_restore_and_fork(api):
    path = api.begun(seed=4)
    api.step(path, "right", 1)
    _, saved = api.post(f"{path}/snapshot")
    status, forked = api.post(f"{path}/fork")
    assert status == 201
    twin = f"/v1/sessions/{forked['session_id']}"
    _, after = api.step(path, "right", 2)
    assert api.step(twin, "right", 2) == (200, after)
    status, back = api.post(f"{path}/restore", saved)
    assert (status, back["turn"]) == (200, 1)
    assert api.step(path, "right", 2) == (200, after)
    local = gym.make(CORRIDOR)
    local.reset(seed=4)
    local.step("right")
    assert local.unwrapped.snapshot() == saved["snapshot"].encode()


def test_render_shows_what_the_agent_sees(api):
    path = api.open(render_mode="ansi")
    _, reply = api.post(f"{path}/reset", {"seed": 1})
    assert api.get(f"{path}/render") == (200, {"render": reply["observation"]})
    assert api.get(f"{api.begun()}/render") == (200, {"render": None})


def test_trajectory_is_a_recording_that_replays(api):
    path = api.begun(seed=7, split="valid_unseen")
    for turn, action in enumerate(["right", "jump \ud800", "right", "left"], 1):
        api.step(path, action, turn)
    status, _ = api.get(f"{path}/trajectory")
    assert status == 200
    assert api.response.mimetype == "application/jsonl"
    [recorded] = recorder.parse(api.response.get_data(as_text=True).splitlines(), "trajectory")
    assert recorded.header["env_id"] == CORRIDOR
    assert recorded.actions == ["right", "jump \ud800", "right", "left"]
    assert recorder.replay(recorded) == 5
    assert api.step(path, "right", 5)[1]["turn"] == 5, "the session itself must not have moved"


def test_private_arguments_stay_on_the_server(faulty):
    path = faulty.begun()
    faulty.get(f"{path}/trajectory")
    texts = [faulty.response.get_data(as_text=True)]
    texts += [json.dumps(faulty.get(path)[1]), json.dumps(faulty.get("/v1/info")[1])]
    texts += [json.dumps(faulty.post(f"{path}/snapshot")[1])]
    assert not any("/srv/secret" in text for text in texts)


def test_unknown_numbers_travel_as_null_and_text_as_ascii(api):
    path = api.begun()
    api.step(path, "厨房 \ud800", 1)
    raw = api.response.get_data()
    assert raw.isascii()
    assert b"NaN" not in raw
    info = {"progress": math.nan, "score": 0.5, "metrics": {"x": math.nan, "y": 1.0}}
    assert serialization.encode_info(info) == {
        "progress": None,
        "score": 0.5,
        "metrics": {"y": 1.0},
    }


def test_any_string_is_an_action(api):
    path = api.begun()
    for turn, action in enumerate([*testing.JUNK_ACTIONS, "x" * 100_000], 1):
        status, reply = api.step(path, action, turn)
        assert status == 200
        assert reply["info"]["action_key"] == "<invalid>"


def test_deleting_a_session_closes_its_environment(faulty):
    path = faulty.open()
    assert type(faulty.app).__name__ == "Flask"
    before = faulty.app.extensions["agentgyms"].sessions
    assert len(before) == 1
    assert faulty.call("DELETE", path) == (204, None)
    assert len(before) == 0


def test_metrics_count_what_happened():
    api = Api(create_app(CORRIDOR))
    path = api.begun()
    api.step(path, "right", 1)
    api.step(path, "right", 1)
    api.call("DELETE", path)
    api.get("/nowhere")
    api.get("/metrics")
    lines = api.response.get_data(as_text=True).splitlines()
    assert "agentgyms_turns_total 1.0" in lines, "a repeated turn was counted twice"
    assert 'agentgyms_episodes_total{event="begun"} 1.0' in lines
    assert 'agentgyms_sessions_closed_total{reason="closed"} 1.0' in lines
    assert "agentgyms_sessions 0.0" in lines
    assert 'agentgyms_requests_total{method="GET",route="unknown",status="404"} 1.0' in lines
    step = 'method="POST",route="/v1/sessions/<session_id>/step",status="200"'
    assert f"agentgyms_requests_total{{{step}}} 2.0" in lines


def test_two_applications_share_no_counters():
    one, two = Api(create_app(CORRIDOR)), Api(create_app(CORRIDOR))
    one.begun()
    two.get("/metrics")
    assert "agentgyms_sessions_opened_total 0.0" in two.response.get_data(as_text=True)
