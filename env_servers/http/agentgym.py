"""AgentGym's protocol (https://github.com/WooooDyy/AgentGym), over the same sessions.

Each client, with its own names of fields, has its routes: `AlfWorldEnvClient` takes the address
`http://127.0.0.1:8000/v1/agentgym/alfworld`. There are no numbers of turns: a request that is sent
twice acts twice. An episode of a task always has the seed 0.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from flask import Blueprint, Response, request

from agentgyms.adapters.messages import user_text
from agentgyms.core.errors import BadRequest, EnvUnavailable
from agentgyms.remote.protocol import messages
from env_servers.http.routes import json_reply, read_body
from env_servers.sessions.errors import Refusal
from env_servers.sessions.service import service

agentgym = Blueprint("agentgym", __name__, url_prefix="/v1/agentgym/<client>")


@dataclass(frozen=True)
class _Client:
    """A client's fields for session and task (a number from 0), and the place of its actions."""

    session: str
    task: str
    lists_actions: bool = False


_CLIENTS: Final = {
    "alfworld": _Client("id", "game", lists_actions=True),
    "searchqa": _Client("env_idx", "id"),
    "webshop": _Client("env_idx", "session_id"),
}


@agentgym.post("/create")
def create(client: str) -> Response:
    """Open a session."""
    kind = _client(client)
    session_id = service().sessions.create({}, uuid.uuid4().hex).session_id
    return json_reply({"id": session_id} if kind.session == "id" else session_id)


@agentgym.post("/reset")
def reset(client: str) -> Response:
    """Begin the episode of a task."""
    kind, fields = _client(client), _fields()
    with service().sessions.use(_named(kind, fields)) as session:
        tasks = session.tasks(session.env.split)
        number = fields.get(kind.task)
        if type(number) is not int or not 0 <= number < len(tasks):
            raise BadRequest(
                f"{kind.task!r} must be a number from 0 to {len(tasks) - 1}, got {number!r:.40}"
            )
        state = session.reset(messages.Reset(seed=0, options={"task_id": tasks[number]}))
    shown = _shown(kind, state)
    return json_reply([shown["state"], None] if client == "webshop" else shown)


@agentgym.post("/step")
def step(client: str) -> Response:
    """Take a turn; `EnvUnavailable` if it was not rated."""
    kind, fields = _client(client), _fields()
    action = fields.get("action")
    if not isinstance(action, str):
        raise BadRequest(f"'action' must be a string, got {action!r:.40}")
    with service().sessions.use(_named(kind, fields)) as session:
        turn = session.step(messages.Step(action, (session.turn or 0) + 1))
    if turn.reward is None or turn.reward != turn.reward:
        raise EnvUnavailable(f"the episode was not rated: {turn.info['feedback_text']}")
    return json_reply(_shown(kind, turn))


@agentgym.get("/observation")
def observation(client: str) -> Response:
    """Give the text that the agent acts on."""
    kind = _client(client)
    with service().sessions.use(_named(kind, request.args)) as session:
        return json_reply(_shown(kind, session.latest)["state"])


@agentgym.post("/close")
def close(client: str) -> Response:
    """Close a session."""
    service().sessions.close(_named(_client(client), _fields()))
    return json_reply(True)


def _client(name: str) -> _Client:
    if name not in _CLIENTS:
        known = ", ".join(_CLIENTS)
        raise Refusal("not_found", f"there is no client {name!r:.40} of AgentGym: {known}")
    return _CLIENTS[name]


def _fields() -> dict[str, Any]:
    fields = read_body()
    if not isinstance(fields, dict):
        raise BadRequest(f"the request must be an object, got {type(fields).__name__}")
    return fields


def _named(kind: _Client, fields: Mapping[str, Any]) -> str:
    """Return the session that a request names."""
    name = fields.get(kind.session)
    if not isinstance(name, str):
        raise BadRequest(f"{kind.session!r} must be what /create returned, got {name!r:.40}")
    return name


def _shown(kind: _Client, reply: messages.State | messages.Turn) -> dict[str, Any]:
    """Return a reply under all names that the clients read."""
    actions = reply.info["admissible_actions"]
    info = {**reply.info, "admissible_actions": []} if kind.lists_actions else reply.info
    text = user_text(reply.observation, info)
    reward = reply.reward if isinstance(reply, messages.Turn) else 0.0
    done = reply.terminated or reply.truncated
    told = {"observation": text, "state": text, "available_actions": actions}
    return {**told, "reward": reward, "done": done, "info": None}
