"""Clients that are not ours: that of docs/clients.md, and one made of the OpenAPI file alone."""

import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import jsonschema
import pytest
import requests
from server_faults import CORRIDOR, TOKEN

import agentgyms
from agentgyms.core import serialization
from env_servers import Server, create_app
from env_servers.http.openapi import document

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/clients.md").read_text()
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
ALFWORLD = "agentgyms/ALFWorld-v0"
URL = "http://127.0.0.1:8001"


def run(block, namespace, url=URL):
    exec(compile(block.replace(URL, url), "docs/clients.md", "exec"), namespace)
    return namespace


def test_the_client_of_the_page_plays_an_episode(monkeypatch, capsys):
    monkeypatch.setenv("AGENTGYMS_TOKEN", TOKEN)
    client, episode, *_ = BLOCK.findall(PAGE)
    lines = [line for line in client.partition("class ")[2].splitlines() if line.strip()]
    assert len(lines) <= 30, "the page promises a whole client in 30 lines"
    app = create_app(ALFWORLD, token=TOKEN)
    with Server(app) as server:
        namespace = run(client, {})
        run(episode, namespace, server.url)
        assert not len(app.extensions["agentgyms"].sessions)
    env = gym.make(ALFWORLD, split="valid_seen")
    _, info = env.reset(seed=0)
    assert info["goal"] in capsys.readouterr().out
    over = False
    while not over:
        _, reward, terminated, truncated, info = env.step(info["admissible_actions"][0])
        over = terminated or truncated
    told = namespace["state"]
    assert told["info"] == serialization.encode_info(info)
    assert told["reward"] == reward


class Flaky(requests.Session):
    """Sends every request twice, and loses every other reply."""

    def request(self, *args, **kwargs):
        super().request(*args, **kwargs)
        reply = super().request(*args, **kwargs)
        self.lost = not getattr(self, "lost", False)
        if self.lost:
            raise requests.ConnectionError("the reply was lost")
        return reply


def test_the_client_of_the_page_acts_once_whatever_is_lost(monkeypatch):
    monkeypatch.setattr(requests, "Session", Flaky)
    namespace = run(BLOCK.findall(PAGE)[0], {})
    namespace["time"] = SimpleNamespace(sleep=lambda seconds: None)
    local, app = gym.make(CORRIDOR, split="valid_seen"), create_app(CORRIDOR, token="")
    with Server(app) as server:
        env = namespace["Client"](server.url, split="valid_seen")
        for seed in (3, 4):
            state = env.reset(seed=seed)
            _, info = local.reset(seed=seed)
            assert state["info"] == serialization.encode_info(info)
            for action in ("right", "right", "no such thing", "left"):
                state = env.step(action)
                *_, info = local.step(action)
                assert state["info"] == serialization.encode_info(info)
        with pytest.raises(RuntimeError, match="no task 'x'"):
            env.reset(options={"task_id": "x"})
        env.close()
        assert not len(app.extensions["agentgyms"].sessions)


def test_the_curl_lines_of_the_page(tmp_path):
    (script,) = re.findall(r"## curl\n\n```bash\n(.*?)```", PAGE, re.DOTALL)
    app = create_app(ALFWORLD, token="")
    with Server(app) as server:
        lines = [line.replace("127.0.0.1:8001", server.url) for line in script.splitlines()]
        done = subprocess.run(
            ["bash", "-euc", "\n".join(["ID=none", *lines[:3]])], capture_output=True, text=True
        )
        *_, opened = done.stdout.replace("}{", "}\n{").splitlines()
        environment = {**os.environ, "ID": json.loads(opened)["session_id"]}
        rest = "\n".join(f"{line.partition(' > ')[0]}; echo" for line in lines[3:])
        done = subprocess.run(
            ["bash", "-euc", rest], capture_output=True, text=True, env=environment, cwd=tmp_path
        )
        assert '"error"' not in done.stdout
        assert '"turn":1' in done.stdout
        assert not len(app.extensions["agentgyms"].sessions)


class FromDescription:
    """A client that knows nothing but what `/openapi.json` says."""

    def __init__(self, url, token):
        self.url, self.http = url, requests.Session()
        self.file = self.http.get(f"{url}/openapi.json").json()
        (scheme,) = [
            s
            for s in self.file["components"]["securitySchemes"].values()
            if s.get("type") == "http"
        ]
        self.http.headers["Authorization"] = f"{scheme['scheme'].capitalize()} {token}"
        self.operations = {
            operation["operationId"]: (method, path, operation)
            for path, methods in self.file["paths"].items()
            for method, operation in methods.items()
            if isinstance(operation, dict) and "operationId" in operation
        }

    def call(self, name, body=None, **parameters):
        method, path, operation = self.operations[name]
        reply = self.http.request(method, self.url + path.format(**parameters), json=body)
        if body is not None:
            self.check(body, operation["requestBody"]["content"]["application/json"]["schema"])
        expected = self.look_up(operation["responses"][str(reply.status_code)])
        if "content" not in expected:
            return None
        media = reply.headers["Content-Type"].partition(";")[0]
        schema = expected["content"][media].get("schema", {})
        if media != "application/json":
            return reply.text
        self.check(reply.json(), schema)
        return reply.json()

    def look_up(self, found):
        while "$ref" in found:
            place = self.file
            for name in found["$ref"].removeprefix("#/").split("/"):
                place = place[name]
            found = place
        return found

    def check(self, value, schema):
        whole = {**schema, "components": self.file["components"]}
        jsonschema.Draft202012Validator(whole).validate(value)


def test_a_client_made_of_the_description_alone_plays_an_episode():
    local = gym.make(CORRIDOR)
    with Server(create_app(CORRIDOR, token=TOKEN)) as server:
        client = FromDescription(server.url, TOKEN)
        assert client.call("info")["env_id"] == CORRIDOR
        task_id = client.call("listTasks")["tasks"][0][0]
        opened = client.call("createSession", {"kwargs": {}, "request_id": "mine"})
        at = {"session_id": opened["session_id"]}
        state = client.call("resetSession", {"seed": 1, "options": {"task_id": task_id}}, **at)
        assert state["info"]["task_id"] == task_id
        saved = client.call("snapshotSession", {}, **at)
        expert, turn = agentgyms.expert(local), 0
        observation, info = local.reset(seed=1, options={"task_id": task_id})
        while not state.get("terminated"):
            turn, action = turn + 1, expert(observation, info)
            told = {"action": action, "turn": turn, "episode": 1}
            state = client.call("stepSession", told, **at)
            observation, *_, info = local.step(action)
            assert state["info"] == serialization.encode_info(info)
        assert state["info"]["success"]
        assert client.call("getSession", **at)["turn"] == turn
        assert len(client.call("getTrajectory", **at).splitlines()) == turn + 2
        branch = client.call("forkSession", {"request_id": "branch"}, **at)
        assert client.call("restoreSession", saved, **at)["turn"] == 0
        gap = client.call("stepSession", {"action": "right", "turn": 9}, **at)
        assert gap["error"]["code"] == "turn_conflict"
        for session_id in (at["session_id"], branch["session_id"]):
            client.call("deleteSession", session_id=session_id)
        assert client.call("getSession", **at)["error"]["code"] == "session_expired"


def test_the_page_names_operations_that_are_there():
    described = document.document()
    for path in re.findall(r"127\.0\.0\.1:8001(/[\w/$]*)", PAGE):
        assert path.replace("$ID", "{session_id}") in described["paths"], path
