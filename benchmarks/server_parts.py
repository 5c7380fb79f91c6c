"""What `benchmarks/server.py` runs elsewhere: its environment, and a bare Flask route beside it.

    python benchmarks/server_parts.py

starts the bare server, prints its address, and answers until it is told to stop.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import gymnasium as gym
import numpy as np
import waitress
from flask import Flask, Response, request

from agentgyms.core.env import Outcome, TextEnv
from agentgyms.core.serialization import dumps
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.remote.protocol import framing
from agentgyms.remote.protocol.messages import Turn

ENV_ID = "benchmarks/Notices-v0"
NUM_CHARACTERS, NUM_PAGES, NUM_THREADS = 4096, 16, 64
ACTIONS = tuple(f"read notice {number}" for number in range(NUM_PAGES))


class NoticesEnv(TextEnv):
    """A board of notices of 4 kB each: a step costs next to nothing."""

    default_max_turns = 10**7
    splits = ("train",)
    pages: Sequence[str] = ()

    def load_tasks(self) -> TaskSet:
        """Return the one task."""
        return TaskSet(self.split, [Task("train/board", "board")])

    def goal(self, task: Task) -> str:
        """Return the task sentence."""
        return "read the notices"

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Write the notices."""
        line = "The {}th of the notices says that the library is closed on the {}th of the month.\n"
        self.pages = [
            "".join(line.format(page, day) for day in range(60))[:NUM_CHARACTERS]
            for page in range(NUM_PAGES)
        ]
        return self._read(0, "")

    def act(self, action: str) -> Outcome:
        """Read a notice."""
        return self._read(int(action.rpartition(" ")[2]), action)

    def save(self) -> Any:
        """Return the state, which is nothing."""
        return []

    def load(self, task: Task, state: Any) -> None:
        """Take up a state."""

    def _read(self, page: int, action: str) -> Outcome:
        return Outcome(
            self.pages[page], f"{page:032x}", admissible=ACTIONS, action_key=action, progress=0.0
        )


gym.register(ENV_ID, entry_point=NoticesEnv)


def example() -> dict[str, Any]:
    """Return a reply to a step, as it travels."""
    env = NoticesEnv()
    env.reset(seed=0)
    return framing.write(Turn(*env.step(ACTIONS[1]), turn=1))


def bare_app() -> Flask:
    """Return an application with one route: a look into a dictionary, a reply of the same size."""
    app = Flask("bare")
    sessions = {str(number): example() for number in range(NUM_THREADS)}

    @app.post("/step")
    def step() -> Response:
        asked = request.get_json()
        reply = sessions[asked["session_id"]]
        return Response(json.dumps(reply), mimetype="application/json")

    return app


class PlainClient:
    """A client of the bare server that keeps its connection, written with the standard library."""

    def __init__(self, url: str, session_id: str) -> None:
        """Connect."""
        address = urlsplit(url)
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._session_id = session_id

    def step(self, action: str) -> Any:
        """Return the reply."""
        body = dumps({"session_id": self._session_id, "action": action, "turn": 1})
        self._connection.request("POST", "/step", body, {"Content-Type": "application/json"})
        return json.loads(self._connection.getresponse().read())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def main() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        print(f"bare Flask at http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        waitress.serve(bare_app(), sockets=[listening], threads=NUM_THREADS, _quiet=True)


if __name__ == "__main__":
    main()
