"""The state of one application: its environments, sessions, counters and readiness."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any, Final, cast

from flask import current_app

import agentgyms
from agentgyms.remote.protocol import framing, messages
from agentgyms.serving.served import EXTENSION, State
from agentgyms.serving.token_access import Access
from env_servers.observability.metrics import Metrics
from env_servers.sessions.env_factory import EnvFactory
from env_servers.sessions.sessions import Sessions

_PURPOSE: Final = "agentgyms play"


class Service(State[Sessions]):
    """The state of one application; the server sets `draining` and `waiting`, see `Served`."""

    def __init__(
        self,
        factory: EnvFactory,
        sessions: Sessions,
        metrics: Metrics,
        *,
        token: str,
        max_body_bytes: int,
    ) -> None:
        self.factory, self.metrics = factory, metrics
        super().__init__(Access(token, _PURPOSE), max_body_bytes, sessions)
        self._ready = False
        self._probing = threading.Lock()
        metrics.watch("draining", "1 once the server is about to stop.", lambda: self.draining)
        metrics.watch("requests_in_flight", "Requests being answered.", lambda: self.in_flight)
        metrics.watch("requests_waiting", "Requests without a thread.", lambda: self.waiting())

    def ready(self) -> bool:
        """Return whether sessions can be opened; the first time, by making one and warming it up.

        Raises all that the environment raises.
        """
        if self.draining:
            return False
        if self._ready:
            return True
        if not self._probing.acquire(blocking=False):
            return False
        try:
            env = self.factory.make()
            try:
                env.reset(seed=0)
                env.warm()
            finally:
                env.close()
            self._ready = True
        finally:
            self._probing.release()
        return True

    def info(self) -> messages.Info:
        """Return what this server is."""
        limits = messages.Limits(
            max_sessions=self.sessions.max_sessions,
            ttl_s=self.sessions.ttl_s,
            max_body_bytes=self.max_body_bytes,
            max_batch=messages.MAX_BATCH,
            max_tasks=messages.MAX_TASKS,
        )
        return messages.Info(
            protocol=framing.PROTOCOL,
            agentgyms=agentgyms.__version__,
            env_id=self.factory.env_id,
            environment=self.factory.description(),
            limits=asdict(limits),
        )


def service() -> Service:
    """Return the service of the application that answers now."""
    found: Any = current_app.extensions[EXTENSION]
    return cast("Service", found)
