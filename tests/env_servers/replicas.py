"""Servers in processes of their own, to be killed, stopped, drained and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import Self

import requests
from ports import free_port
from server_faults import TOKEN


class Replica:
    """One server at one address, whose place is taken again after its end.

    Args:
        env_id: What it serves.
        *arguments: Of the program.
    """

    def __init__(self, env_id: str, *arguments: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "env_servers", env_id, *arguments]
        self._running: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Return when it answers."""
        self.begin()
        return self.await_start()

    def await_start(self) -> Self:
        """Return when it answers, having begun before."""
        assert self._running is not None
        assert self._running.stdout is not None
        assert self.url in self._running.stdout.readline()
        return self

    def begin(self) -> None:
        """Start it without waiting."""
        self.close()
        self._running = subprocess.Popen(
            [*self._command, "--port", str(self.port)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "AGENTGYMS_TOKEN": TOKEN},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def kill(self) -> None:
        """End it at once, with all it holds."""
        assert self._running is not None
        self._running.kill()
        self._running.communicate()
        assert self._running.returncode == -signal.SIGKILL
        self._running = None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._running is not None
        self._running.send_signal(number)

    def wait(self) -> int:
        """Return its exit code when it has ended."""
        assert self._running is not None
        ended, self._running = self._running, None
        ended.communicate(timeout=20)
        return ended.returncode

    def figure(self, name: str) -> float:
        """Return a figure that it reports, such as `agentgyms_sessions`."""
        text = requests.get(f"{self.url}/metrics", timeout=60).text
        [value] = re.findall(rf"^{name} (\S+)$", text, re.MULTILINE)
        return float(value)

    def close(self) -> None:
        """End it if it still runs."""
        if self._running is None:
            return
        if self._running.poll() is None:
            self._running.kill()
        self._running.communicate()
        self._running = None
