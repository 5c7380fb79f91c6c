"""The fork servers of the real engine for one data root, and their working folders."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from agentgyms.envs.appworld.engine.data_roots import Roots
from agentgyms.envs.appworld.sandbox.forkserver import ForkServer, role_command, role_environment

WARM_LIMIT_S: Final = 300.0
"""Longest time of starting a server, in seconds; it takes about ten seconds of one core."""

FORKS: Final = 200


class Servers:
    """The fork servers of engine workers and of evaluators."""

    def __init__(self, python: str, roots: Roots, *, forks: int = FORKS) -> None:
        """Make the working folders; a server starts at its first use, for `forks` children."""
        self._folder = Path(tempfile.mkdtemp(prefix="agentgyms-appworld-"))
        self._names = itertools.count()
        world, truth = self._folder / "world", self._folder / "truth"
        outputs = world / "experiments" / "outputs"
        outputs.mkdir(parents=True)
        truth.mkdir()
        (world / "data").symlink_to(roots.world.resolve() / "data")
        (truth / "data").symlink_to(roots.truth.resolve() / "data")
        (truth / "experiments").symlink_to(world / "experiments")
        self._outputs = outputs
        self.engines = self._server(python, "engine", world, forks)
        self.evaluators = self._server(python, "evaluator", truth, forks)

    def _server(self, python: str, role: str, root: Path, forks: int) -> ForkServer:
        home = str(self._folder)
        return ForkServer(
            role_command(python, role, {"root": str(root)}),
            environment=role_environment(
                HOME=home, APPWORLD_ROOT=str(root), APPWORLD_CACHE=f"{home}/cache"
            ),
            start_limit_s=WARM_LIMIT_S,
            forks=forks,
            kind=f"appworld-{role}",
        )

    def experiment(self) -> Path:
        """Return the folder for the state of one world; its name is that of the experiment."""
        return self._outputs / f"world-{next(self._names)}"

    def close(self) -> None:
        """End the servers with their children, and remove their folders."""
        self.engines.close()
        self.evaluators.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def servers(python: str, roots: Roots) -> Servers:
    """Return this process's servers for some data; they end with the process."""
    return _servers(python, roots, os.getpid())


@functools.lru_cache(maxsize=4)
def _servers(python: str, roots: Roots, process: int) -> Servers:
    new_servers = Servers(python, roots)

    def close() -> None:
        if os.getpid() == process:  # not in a forked process
            new_servers.close()

    atexit.register(close)
    return new_servers
