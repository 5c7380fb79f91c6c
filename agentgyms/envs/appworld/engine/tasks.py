"""The tasks of the real engine: generated ones, or those of AppWorld."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, get_args

from agentgyms.core.errors import BadOption, UnknownSplit, WorkerLost
from agentgyms.envs.appworld.engine import sources
from agentgyms.envs.appworld.engine.data_roots import SPLITS
from agentgyms.envs.appworld.engine.servers import servers
from agentgyms.envs.appworld.engine.sources import Source
from agentgyms.envs.appworld.engine.world import EngineWorld
from agentgyms.envs.appworld.sandbox import install

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
