"""What the tests of the AppWorld environment share: playing, and counting processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from agentgyms.envs.appworld.env import AppWorldEnv


def play_expert(env: AppWorldEnv) -> list[tuple[Any, ...]]:
    """Play the expert from the beginning of an episode to its end; return all step results."""
    results = []
    while not results or not (results[-1][2] or results[-1][3]):
        results.append(env.step(env.expert_actions()["best"]))
    return results


def executor_of(env: AppWorldEnv) -> Any:
    """Return the executor of the running episode, None if there is none."""
    return env._runner._resources.executor


def children() -> dict[int, str]:
    """Return the state of every process that descends from this one, by its id."""
    states, parents = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            states[int(entry.name)], parents[int(entry.name)] = fields[0], int(fields[1])
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return {pid: states[pid] for pid in found - {os.getpid()}}
        found |= more


def settled(expected: int, patience_s: float = 5.0) -> int:
    """Return the number of child processes, once it is at most `expected` or time is up."""
    deadline = time.monotonic() + patience_s
    while len(children()) > expected and time.monotonic() < deadline:
        time.sleep(0.02)
    return len(children())


def open_files() -> int:
    """Return the number of file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))
