"""The browser environments' web site, a child process; see `webshop_site/browser_control.py`."""

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

from agentgyms.core import imports
from agentgyms.core.errors import WorkerLost
from agentgyms.processes.child import Child

LIMIT_S: Final = 120.0
"""Longest time that the site may take to start or to reply, in seconds."""

_COMMAND: Final = ("-m", "env_servers.webshop_site", "--control")
_ROOT: Final = Path(__file__).parents[4]


class VisitLost(WorkerLost):
    """The visit no longer exists on the site."""


def check_packages() -> None:
    """Check that the packages of the browser and of the site are installed."""
    for package in (*imports.PACKAGES["browser"], "env_servers"):
        if importlib.util.find_spec(package) is None:
            raise DependencyNotInstalled(imports.missing(package, "browser"))


class Site:
    """A running site, which only this machine can reach; thread-safe."""

    def __init__(self) -> None:
        """Start it; raise `WorkerLost` if it does not start."""
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

    def request(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a request; `VisitLost` if the visit no longer exists."""
        with self._lock:
            reply = self._child.ask(message)
        if "gone" in reply:
            raise VisitLost(f"the shop's visit is lost: {reply['gone']}")
        return reply

    def close(self) -> None:
        """End it."""
        with self._lock:
            self._child.close()


_sites_lock = threading.Lock()
_sites: dict[int, Site] = {}


def shared_site() -> Site:
    """Return this process's site, which is started if it is not running."""
    with _sites_lock:
        site = _sites.get(os.getpid())  # a forked process does not use its parent's site
        if site is not None and not site.alive:
            site.close()
            site = None
        if site is None:
            site = _sites[os.getpid()] = Site()
        return site


@atexit.register
def close_site() -> None:
    """End the site of this process."""
    with _sites_lock:
        site = _sites.pop(os.getpid(), None)
    if site is not None:
        site.close()
