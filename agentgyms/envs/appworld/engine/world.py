"""The tasks of the real engine; a task's world is in one worker process, scored in another."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, get_args

from agentgyms.core.errors import BadOption, UnknownSplit, WorkerLost
from agentgyms.envs.appworld.engine import sources
from agentgyms.envs.appworld.engine.data_roots import SPLITS, Roots
from agentgyms.envs.appworld.engine.servers import Servers, servers
from agentgyms.envs.appworld.engine.sources import Source
from agentgyms.envs.appworld.sandbox import install
from agentgyms.envs.appworld.sandbox.forkserver import Worker
from agentgyms.envs.appworld.world import ApiResponse, Brief, Report, Verdict

_ATTEMPTS: Final = 3


class EngineTasks:
    """The tasks of the real engine; implements `Tasks`."""

    def __init__(
        self, source: Source = "generated", data_path: str | os.PathLike[str] | None = None
    ) -> None:
        """Find the engine and the data; generated data is built at its first use."""
        if source not in get_args(Source):
            raise BadOption(
                f"source={source!r}: expected one of {', '.join(map(repr, get_args(Source)))}"
            )
        self.python = install.python()
        self.roots = sources.find(source, data_path, self.python)
        self.version = f"{source}-{self.roots.version}"
        self._generated = source == "generated"

    def families(self, split: str) -> Mapping[str, int]:
        """Return the difficulty (0: unknown) of each task of a split, in the benchmark's order."""
        if split not in SPLITS:
            raise UnknownSplit(f"split {split!r}: expected one of {', '.join(SPLITS)}")
        return {task: self._difficulty(task) for task in self.roots.tasks(split)}

    def _difficulty(self, task_id: str) -> int:
        metadata = self.roots.ground_truth(task_id, "metadata") or {}
        return int(metadata.get("difficulty") or 0)

    def open(self, task_id: str) -> EngineWorld:
        """Return a new world of a task in its initial state; a lost process is replaced."""
        fork_servers, difficulty = servers(self.python, self.roots), self._difficulty(task_id)
        for _ in range(_ATTEMPTS - 1):
            with suppress(WorkerLost):
                return EngineWorld(fork_servers, self.roots, task_id, difficulty)
        return EngineWorld(fork_servers, self.roots, task_id, difficulty)

    def solution(self, task_id: str) -> Sequence[str] | None:
        """Return the code blocks of the reference solution; None for official tasks."""
        if not self._generated:
            return None
        blocks = self.roots.ground_truth(task_id, "solution_blocks")
        return None if blocks is None else [str(block) for block in blocks]


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
