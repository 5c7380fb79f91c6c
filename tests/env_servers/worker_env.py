"""An environment whose engine is a child process, which hangs or dies on command."""

from __future__ import annotations

import os
import sys
from typing import Any

import gymnasium as gym

from agentgyms.core.env import Outcome
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.processes.child import Child

_ENGINE = """
import json, os, sys, time
print(json.dumps({"pid": os.getpid()}), flush=True)
for line in sys.stdin:
    time.sleep(json.loads(line)["sleep"])
    print("{}", flush=True)
"""


class WorkerEnv(CorridorEnv):
    """A corridor behind a process."""

    blocking = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        command = [sys.executable, "-c", _ENGINE]
        self._child = Child(command, limit_s=600, environment=os.environ, kind="test-engine")

    def act(self, action: str) -> Outcome:
        self._child.ask({"sleep": 600 if action == "hang" else 0})
        outcome = super().act(action)
        return outcome._replace(observation=str(self._child.greeting["pid"]))

    def close(self) -> None:
        self._child.close()


gym.register("test/Worker-v0", entry_point=WorkerEnv)
