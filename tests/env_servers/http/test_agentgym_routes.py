"""AgentGym's protocol, asked for as the clients of its package agentenv do."""

from __future__ import annotations

import re

import gymnasium as gym
import pytest
import requests
from server_faults import CORRIDOR, TOKEN

import agentgyms
from env_servers import Server, create_app

ALFWORLD, SEARCHQA, WEBSHOP = (f"agentgyms/{n}-v0" for n in ("ALFWorld", "SearchQA", "WebShop"))


class ClientLike:
    """The requests of a client, by the names of its fields."""

    def __init__(self, server, name, session, task):
        self.base, self.session, self.task = f"{server.url}/v1/agentgym/{name}", session, task
        made = self.post("create")
        self.env_id = made["id"] if session == "id" else made

    def post(self, path, **fields):
        named = {self.session: self.env_id} if path != "create" else None
        reply = requests.post(f"{self.base}/{path}", json=named and {**fields, **named}, timeout=60)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def observe(self):
        url = f"{self.base}/observation?{self.session}={self.env_id}"
        reply = requests.get(url, timeout=60)
        assert reply.status_code == 200, reply.text
        return reply.json()


@pytest.mark.parametrize(
    ("env_id", "name", "session", "task"),
    [
        (ALFWORLD, "alfworld", "id", "game"),
        (WEBSHOP, "webshop", "env_idx", "session_id"),
        (SEARCHQA, "searchqa", "env_idx", "id"),
    ],
)
def test_a_client_plays_its_task_to_the_end(env_id, name, session, task):
    env = gym.make(env_id)
    expert = agentgyms.expert(env)
    task_id = env.unwrapped.tasks[3]
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    with Server(create_app(env_id, token="", agentgym=True)) as server:
        client = ClientLike(server, name, session, task)
        more = {"world_type": "Text"} if name == "alfworld" else {}
        begun = client.post("reset", **{task: 3}, **more)
        if name == "alfworld":
            assert begun["observation"] == f"Your task: {info['goal']}\n\n{observation}"
            assert begun["available_actions"] == info["admissible_actions"]
        if name == "webshop":
            assert begun == [client.observe(), None]
        done = False
        while not done:
            assert observation in client.observe()
            action = expert(observation, info)
            told = client.post("step", action=action)
            observation, reward, terminated, truncated, info = env.step(action)
            done = terminated or truncated
            assert (told["reward"], told["done"]) == (reward, done)
            assert observation in told["state"] == told["observation"]
            assert told["available_actions"] == info["admissible_actions"]
        assert info["success"]
        client.post("reset", **{task: 0}, **more)
        assert client.post("close") is True


def asked(server, path, body, **headers):
    url = f"{server.url}/v1/agentgym/{path}"
    return requests.post(url, json=body, headers=headers, timeout=60)


def test_what_is_wrong_is_said():
    with Server(create_app(CORRIDOR, token="", agentgym=True)) as server:
        session = asked(server, "alfworld/create", None).json()
        reset, step = "alfworld/reset", "alfworld/step"
        for path, body, status, words in [
            ("sciworld/create", None, 404, "alfworld, searchqa, webshop"),
            (reset, {**session, "game": 40}, 422, "from 0 to 39, got 40"),
            (reset, {**session, "game": True}, 422, "got True"),
            (reset, {"id": 7, "game": 0}, 422, "what /create returned, got 7"),
            (reset, [], 422, "must be an object, got list"),
            (step, {**session, "action": 1}, 422, "must be a string, got 1"),
            (step, {**session, "action": "left"}, 409, "reset"),
            (step, {"id": "none", "action": "left"}, 404, "session"),
        ]:
            reply = asked(server, path, body)
            assert reply.status_code == status, reply.text
            assert re.search(words, reply.json()["error"]["message"])
        url = f"{server.url}/v1/agentgym/alfworld/observation"
        assert requests.get(url, params=session, timeout=60).status_code == 409


def test_it_asks_for_the_token_and_is_there_only_where_it_is_wanted():
    with Server(create_app(CORRIDOR, token=TOKEN, agentgym=True)) as server:
        assert asked(server, "webshop/create", None).status_code == 401
        authorized = asked(server, "webshop/create", None, Authorization=f"Bearer {TOKEN}")
        assert authorized.status_code == 200
    with Server(create_app(CORRIDOR, token="")) as server:
        assert asked(server, "webshop/create", None).status_code == 404
