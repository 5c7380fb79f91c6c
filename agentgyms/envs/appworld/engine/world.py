"""A world of the real engine: in one worker process, scored in another."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.envs.appworld.engine.data_roots import Roots
from agentgyms.envs.appworld.engine.servers import Servers
from agentgyms.envs.appworld.sandbox.forkserver import Worker
from agentgyms.envs.appworld.world import ApiResponse, Brief, Report, Verdict

LIMIT_S: Final = 120.0
"""Longest time of opening, of one call, and of the tests, in seconds."""


class EngineWorld:
    """The apps of one task in an engine worker; implements `World`."""

    def __init__(self, servers: Servers, roots: Roots, task_id: str, difficulty: int) -> None:
        """Open the world in its initial state; difficulty 0 means that it is not known."""
        specs = roots.specs(task_id)
        self._servers = servers
        self._experiment = servers.experiment()
        self._worker = servers.engines.fork()
        self._release = weakref.finalize(self, _release, self._worker, self._experiment)
        opened = self._worker.request({"open": task_id}, LIMIT_S)
        self._completed = False
        self._brief = Brief(
            task_id=task_id,
            instruction=specs["instruction"],
            supervisor=specs["supervisor"],
            now=opened["now"],
            difficulty=difficulty,
            apis=opened["apis"],
        )

    @property
    def brief(self) -> Brief:
        """The task."""
        return self._brief

    @property
    def alive(self) -> bool:
        """Whether the worker runs."""
        return self._worker.alive

    @property
    def completed(self) -> bool:
        """Whether `supervisor.complete_task` was called."""
        return self._completed

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._worker.pid

    def call(self, app: str, api: str, arguments: Mapping[str, Any]) -> ApiResponse:
        """Return an API's response."""
        response = self._worker.request({"call": [app, api, dict(arguments)]}, LIMIT_S)
        if "raise" in response:
            kind, message, status = response["raise"]
            return ApiResponse(error=message, kind=kind, status=status)
        self._completed |= (app, api) == ("supervisor", "complete_task")
        return ApiResponse(value=response["value"])

    def digest(self) -> str:
        """Return a digest of the changes of the apps' records since the beginning."""
        return str(self._worker.request({"digest": True}, LIMIT_S)["digest"])

    def report(self) -> Report:
        """Run the tests on the current records, and return their verdicts."""
        self._worker.request({"save": self._experiment.name}, LIMIT_S)
        evaluator = self._servers.evaluators.fork()
        try:
            message = {"evaluate": [self._brief.task_id, self._experiment.name]}
            verdicts = evaluator.request(message, LIMIT_S)["verdicts"]
        finally:
            evaluator.close()
        return Report(tuple(Verdict(*verdict) for verdict in verdicts))

    def close(self) -> None:
        """End the worker and remove its files; a second call does nothing."""
        self._release()


def _release(worker: Worker, experiment: Path) -> None:
    worker.close()
    shutil.rmtree(experiment, ignore_errors=True)
