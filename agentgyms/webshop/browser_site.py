"""The web site that browser environments shop in: one child process of this one.

The site is a program of the server package, which this package does not import. It ends when this
process does, and it is driven through its pipes, see `env_servers/webshop_site/control.py`.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gymnasium.error import DependencyNotInstalled

from agentgyms import extras
from agentgyms.child import Child
from agentgyms.errors import WorkerLost

LIMIT_S: Final = 120.0
"""Longest time that the site may take to start or to answer, in seconds."""

_COMMAND: Final = ("-m", "env_servers.webshop_site", "--control")
_ROOT: Final = Path(__file__).parents[2]


class VisitLost(WorkerLost):
    """The site has no such visit any more."""


def check_packages() -> None:
    """Check that the browser can be driven and the site can run.

    Raises:
        DependencyNotInstalled: One of its packages is missing.
    """
    for package in (*extras.PACKAGES["browser"], "env_servers"):
        if importlib.util.find_spec(package) is None:
            raise DependencyNotInstalled(extras.missing(package, "browser"))


class Site:
    """A running site; may be used by many threads.

    Attributes:
        url: Its address, on this machine alone.
    """

    def __init__(self) -> None:
        """Start it.

        Raises:
            WorkerLost: It does not start.
        """
        paths = [path for path in (os.environ.get("PYTHONPATH"), str(_ROOT)) if path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        self._lock = threading.Lock()
        self._child = Child(
            [sys.executable, *_COMMAND],
            limit_s=LIMIT_S,
            environment=environment,
            kind="webshop-site",
        )
        self.url: str = self._child.greeting["url"]

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._child.alive

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            VisitLost: The visit is gone.
            WorkerLost: The site is gone, or it failed.
        """
        with self._lock:
            answer = self._child.ask(request)
        if "gone" in answer:
            raise VisitLost(f"the shop's visit is lost: {answer['gone']}")
        return answer

    def close(self) -> None:
        """End it."""
        with self._lock:
            self._child.close()


_opening = threading.Lock()
_open: dict[int, Site] = {}


def shared_site() -> Site:
    """Return this process's site; one that was lost is replaced.

    Raises:
        WorkerLost: It does not start.
    """
    with _opening:
        site = _open.get(os.getpid())  # a process made by fork has no part in its parent's site
        if site is not None and not site.alive:
            site.close()
            site = None
        if site is None:
            site = _open[os.getpid()] = Site()
        return site


@atexit.register
def close_site() -> None:
    """End the site of this process."""
    with _opening:
        site = _open.pop(os.getpid(), None)
    if site is not None:
        site.close()
