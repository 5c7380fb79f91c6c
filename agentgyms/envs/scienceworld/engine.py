"""The real engine: JVMs in child processes that stay warm between episodes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from gymnasium.error import DependencyNotInstalled

from agentgyms.core.imports import install
from agentgyms.processes.child import Child
from agentgyms.processes.workers import End

PYTHON_VARIABLE: Final = "AGENTGYMS_SCIENCEWORLD_PYTHON"
"""Environment variable with the interpreter that has scienceworld, if it is not this one."""

VERSION: Final = "1.2.3"
LIMIT_S: Final = 300.0
OLDEST_JAVA: Final = 11

_WORKER: Final = Path(__file__).with_name("worker.py")
_ADVICE: Final = (
    f"install it with `{install('scienceworld')}`, or set {PYTHON_VARIABLE} to the interpreter of "
    "an environment that has scienceworld"
)
_JAVA_ADVICE: Final = (
    f"install a Java runtime, {OLDEST_JAVA} or newer, such as openjdk-17-jre-headless, and "
    "put `java` on the path or set JAVA_HOME"
)
_GOLD_PATHS: Final = 64

Game = tuple[str, int, str]
"""The engine's name of a task, the variation, and the simplifications with commas."""


class Answer(NamedTuple):
    """The engine's view of a state: its texts, goals and time, and a digest `key` of all it shows.

    `admissible` is sorted, and empty where it was not asked for. `score` is from 0 to 1, or -1 for
    a failure; `wait` takes eleven `moves`. `failed` is the error that the action raised, or "".
    """

    observation: str
    admissible: list[str]
    score: float
    completed: bool
    moves: int
    goals: str
    task: str
    key: str
    failed: str = ""


def find_python() -> str:
    """Return the interpreter that has scienceworld; `DependencyNotInstalled` if this lacks it."""
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    if python == sys.executable and importlib.util.find_spec("scienceworld") is None:
        raise DependencyNotInstalled(f"ScienceWorld needs the package scienceworld: {_ADVICE}")
    return python


def find_java() -> str:
    """Return the path of `java`; `DependencyNotInstalled` if there is none, or it is too old."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on the path"
        raise DependencyNotInstalled(f"ScienceWorld needs Java, none is {where}: {_JAVA_ADVICE}")
    version = java_version(java)
    if version < OLDEST_JAVA:
        raise DependencyNotInstalled(
            f"ScienceWorld needs Java {OLDEST_JAVA}, {java} is of version {version or 'unknown'}: "
            f"{_JAVA_ADVICE}"
        )
    return java


@lru_cache(maxsize=4)
def java_version(java: str) -> int:
    """Return the version of a Java runtime, such as 17; 0 if it does not tell."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    return int(found[1]) if found else 0


class Engine:
    """Plays one game at a time, in a child of the pool that it holds while it plays."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def load(self, game: Game, *, listing: bool) -> Answer:
        """Start a game; `listing` asks for the valid actions in every state.

        Raises `WorkerLost` if the child died, was late or cannot play the game, and
        `DependencyNotInstalled` if Java or the package is missing.
        """
        if self._child is not None and not self._child.alive:
            self.close("lost")
        if self._child is None:
            self._child = take()
        self._listing = listing
        return Answer(**self._child.ask({"load": game, "list": listing}))

    def step(self, action: str) -> Answer:
        """Take one turn; after a `WorkerLost` the next `load` takes another child."""
        assert self._child is not None, "load comes before step"
        return Answer(**self._child.ask({"step": action, "list": self._listing}))

    def close(self, how: End = "closed") -> None:
        """Give the child back to the pool, or end one that is lost."""
        child, self._child = self._child, None
        if child is not None:
            if how == "closed" and child.alive:
                give(child)
            else:
                _end(child)


@lru_cache(maxsize=_GOLD_PATHS)
def gold_path(game: Game) -> tuple[str, ...]:
    """Return the engine's solution; another child plays the game to its end, for up to 20 s."""
    child = take()
    path = tuple(child.ask({"gold": game})["gold"])
    give(child)
    return path


# --- the pool ------------------------------------------------------------------------------------

_lock = threading.Lock()
_idle: list[Child] = []


def take() -> Child:
    """Return an idle or a new child; raise `WorkerLost` or `DependencyNotInstalled`."""
    with _lock:
        while _idle:
            child = _idle.pop()
            if child.alive:
                return child
            _end(child)
    python, java = find_python(), find_java()
    environment = dict(os.environ)
    if python != sys.executable:  # which a variable meant for this one's packages would mislead
        environment.pop("PYTHONPATH", None)
    child = Child(
        [python, str(_WORKER), java],
        limit_s=LIMIT_S,
        environment=environment,
        kind="scienceworld-engine",
    )
    if "missing" in child.greeting:
        child.close()
        raise DependencyNotInstalled(
            f"{python} has no scienceworld ({child.greeting['missing']}): {_ADVICE}"
        )
    if child.greeting["version"] != VERSION:
        _end(child)
        raise DependencyNotInstalled(
            f"{python} has scienceworld {child.greeting['version']}, whose tasks may differ from "
            f"those of {VERSION}: {_ADVICE}"
        )
    return child


def give(child: Child) -> None:
    """Keep a child for the next game; as many stay idle as there are cores, others end."""
    with _lock:
        if len(_idle) < (os.cpu_count() or 1):
            _idle.append(child)
            return
    _end(child)


def end_idle() -> None:
    """End the children that nobody plays in, to free their memory."""
    with _lock:
        ended, _idle[:] = list(_idle), []
    for child in ended:
        _end(child)


def _end(child: Child) -> None:
    child.close()
    shutil.rmtree(child.greeting.get("folder", ""), ignore_errors=True)


def _forget() -> None:
    """Leave the children to the process that this one was forked from."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
