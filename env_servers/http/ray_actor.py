"""`EnvActor`: an environment's server in an actor of Ray; see `agentgyms/remote/ray_actors.py`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from agentgyms.remote.transport import Reply, Request, call_app
from agentgyms.serving.served import EXTENSION
from env_servers.http.app import create_app
from env_servers.sessions.service import Service

_MOST_THREADS: Final = 32


class EnvActor:
    """Sessions of one environment, at most `max_sessions`; for its id see `full_id`."""

    def __init__(self, env_id: str, max_sessions: int) -> None:
        self._app = create_app(env_id, token="", max_sessions=max_sessions, for_owner=True)
        self._service: Service = self._app.extensions[EXTENSION]

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies in order; requests to environments that wait are answered at once."""
        answer = partial(call_app, self._app)
        if len(requests) < 2 or not all(map(self._waits, requests)):
            return [answer(request) for request in requests]
        with ThreadPoolExecutor(min(len(requests), _MOST_THREADS), "message") as pool:
            return list(pool.map(answer, requests))

    def _waits(self, request: Request) -> bool:
        names = request.target.split("/")  # "", "v1", "sessions", the id, the operation
        return len(names) > 4 and self._service.sessions.waits(names[3])
