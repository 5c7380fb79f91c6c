"""Metrics of one server, in the Prometheus format."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

import agentgyms
from agentgyms.processes import workers
from agentgyms.remote.protocol import framing
from env_servers.observability import process_memory

_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "DELETE"})
_SECONDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)

Gauged = Callable[[], float]


class Metrics:
    """Counters of one application; no label holds what a client may invent, such as a session."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, env_id: str) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests answered.", "method", "route", "status")
        self.seconds = Histogram(
            "agentgyms_request_seconds",
            "Time to answer a request.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.errors = self._counter(
            "errors", "Requests and items of batches answered with an error.", "code"
        )
        self.opened = self._counter("sessions_opened", "Sessions opened.")
        self.closed = self._counter("sessions_closed", "Sessions closed.", "reason")
        self.episodes = self._counter("episodes", "Episodes begun and ended.", "event")
        self.turns = self._counter("turns", "Turns taken.")
        server = Gauge("agentgyms_server", "Always 1.", ("env_id",), registry=self.registry)
        server.labels(env_id).set(1)
        build = Info("agentgyms_build", "What answers here.", registry=self.registry)
        build.info(
            {
                "version": agentgyms.__version__,
                "protocol": framing.PROTOCOL,
                "python": platform.python_version(),
            }
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(Workers())
        self._by_request: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def watch(self, name: str, text: str, value: Gauged) -> None:
        """Add a gauge, without the prefix `agentgyms_`, whose `value()` any thread may call."""
        Gauge(f"agentgyms_{name}", text, registry=self.registry).set_function(value)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        method = method if method in _METHODS else "other"  # a client may invent any number
        key = (method, route, status)
        found = self._by_request.get(key)
        if found is None:
            found = self._by_request[key] = (
                self.requests.labels(method, route, str(status)),
                self.seconds.labels(method, route),
            )
        found[0].inc()
        found[1].observe(seconds)

    def failed(self, code: str) -> None:
        """Count an error in a reply; `code` is a key of `error_codes.CODES`."""
        self.errors.labels(code).inc()

    def exposition(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"agentgyms_{name}", text, labels, registry=self.registry)


class Workers(Collector):
    """The child processes of this process, which all its applications share."""

    def describe(self) -> list[Metric]:
        """Return nothing: no other collector has these names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        kind = ("kind",)
        alive = GaugeMetricFamily("agentgyms_workers", "Worker processes that run.", labels=kind)
        starts = CounterMetricFamily(
            "agentgyms_worker_starts", "Worker processes started.", labels=kind
        )
        ends = CounterMetricFamily(
            "agentgyms_worker_restarts",
            "Worker processes that another one had to replace, or would.",
            labels=(*kind, "reason"),
        )
        for name, count in workers.counts().items():
            alive.add_metric([name], count.alive)
            starts.add_metric([name], count.starts)
            ends.add_metric([name, "recycled"], count.recycled)
            ends.add_metric([name, "lost"], count.lost)
        yield from (alive, starts, ends)
        yield GaugeMetricFamily(
            "agentgyms_workers_resident_memory_bytes",
            "Resident memory of all child processes; what they share is divided among them.",
            value=process_memory.children_bytes(),
        )
