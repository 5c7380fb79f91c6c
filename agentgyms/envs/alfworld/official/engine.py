"""The official engine, alfworld and textworld, in a child process.

It needs about a second per episode and 40 ms per step, leaks, and is not safe with threads; its
packages bring code under the GPL. Hence it is optional, and this package's engine is the default.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from gymnasium.error import DependencyNotInstalled

from agentgyms.core.imports import install
from agentgyms.processes.child import Child
from agentgyms.processes.workers import End

PYTHON_VARIABLE: Final = "AGENTGYMS_ALFWORLD_PYTHON"
"""Environment variable with the interpreter that has alfworld, if it is not this one."""

EPISODES_PER_CHILD: Final = 100
LIMIT_S: Final = 120.0

_WORKER: Final = Path(__file__).with_name("worker.py")
_ADVICE: Final = (
    f"install it with `{install('alfworld')}`, or set {PYTHON_VARIABLE} to the interpreter of an "
    "environment that has alfworld"
)


def is_installed() -> bool:
    """Return whether this interpreter has alfworld; a folder of that name does not count."""
    found = importlib.util.find_spec("alfworld")
    return found is not None and found.origin is not None


class Answer(NamedTuple):
    """The engine's view of a state: the text, the sorted legal commands, whether it is won."""

    observation: str
    admissible: list[str]
    won: bool


class OfficialEngine:
    """Plays game files in a child, which starts with the first game and is recycled regularly."""

    def __init__(
        self, *, limit_s: float = LIMIT_S, episodes_per_child: int = EPISODES_PER_CHILD
    ) -> None:
        """Check for the packages; the child starts later.

        An answer may take `limit_s` seconds; after `episodes_per_child` games a fresh child starts.
        """
        self._python = os.environ.get(PYTHON_VARIABLE) or sys.executable
        if self._python == sys.executable and not is_installed():
            raise DependencyNotInstalled(f"backend='textworld' needs alfworld: {_ADVICE}")
        self._limit_s = limit_s
        self._episodes_per_child = episodes_per_child
        self._episodes = 0
        self._child: Child | None = None

    def load(self, fields: dict[str, Any]) -> Answer:
        """Start the game with the fields of a game file; `WorkerLost` if the child fails."""
        if self._episodes >= self._episodes_per_child:
            self.close("recycled")
        elif self._child is not None and not self._child.alive:
            self.close("lost")
        if self._child is None:
            # A variable meant for this interpreter's packages would mislead another one.
            environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            child = Child(
                [self._python, str(_WORKER)],
                limit_s=self._limit_s,
                environment=environment,
                kind="alfworld-engine",
            )
            if "missing" in child.greeting:
                child.close()
                raise DependencyNotInstalled(
                    f"{self._python} has no alfworld ({child.greeting['missing']}): {_ADVICE}"
                )
            self._child = child
        self._episodes += 1
        return _answer(self._child.ask({"load": fields}))

    def step(self, command: str) -> Answer:
        """Take one turn; after a `WorkerLost` the next `load` starts another child."""
        assert self._child is not None, "load comes before step"
        return _answer(self._child.ask({"step": command}))

    def close(self, how: End = "closed") -> None:
        """Terminate the child."""
        if self._child is not None:
            self._child.close(how)
            shutil.rmtree(self._child.greeting.get("folder", ""), ignore_errors=True)
        self._child, self._episodes = None, 0


def _answer(reply: dict[str, Any]) -> Answer:
    return Answer(reply["observation"], reply["admissible"], reply["won"])
