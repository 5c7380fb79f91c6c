"""Figures of one server, in the Prometheus format."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "DELETE"})
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class Metrics:
    """Counters of one application, in a registry of their own."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, env_id: str) -> None:
        """Make the counters; `env_id` becomes the label of `agentgyms_server`."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "agentgyms_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "agentgyms_request_seconds",
            "Time to answer a request.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.opened = Counter(
            "agentgyms_sessions_opened", "Sessions opened.", registry=self.registry
        )
        self.closed = Counter(
            "agentgyms_sessions_closed", "Sessions closed.", ("reason",), registry=self.registry
        )
        self.episodes = Counter(
            "agentgyms_episodes", "Episodes begun and ended.", ("event",), registry=self.registry
        )
        self.turns = Counter("agentgyms_turns", "Turns taken.", registry=self.registry)
        server = Gauge("agentgyms_server", "Always 1.", ("env_id",), registry=self.registry)
        server.labels(env_id).set(1)

    def watch_sessions(self, count: Callable[[], int]) -> None:
        """Report what `count` returns as the number of open sessions."""
        gauge = Gauge("agentgyms_sessions", "Open sessions.", registry=self.registry)
        gauge.set_function(count)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        method = method if method in _METHODS else "other"  # a client may invent any number
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(method, route).observe(seconds)

    def exposition(self) -> bytes:
        """Return all figures as text."""
        return generate_latest(self.registry)
