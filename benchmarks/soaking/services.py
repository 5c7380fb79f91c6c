"""Servers of environments in processes of their own, each behind a proxy that faults come from."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fault_proxy import QUICK, SLOW, FaultProxy, Request
from ports import free_port
from process_memory import proportional, tree

TOKEN: Final = "soak"
MARK: Final = "AGENTGYMS_SOAK"
"""Variable by which processes of a soak are found, also when their parents have ended."""

READ_S: Final = 30.0
_STARTS_IN_S: Final = 300.0
_ENDS_IN_S: Final = 60.0
_FAULTY_RATE: Final = 0.3
_KEPT_REQUESTS: Final = 1000


@dataclass
class Tally:
    """What clients of one environment have done.

    Attributes:
        episodes: Episodes played to their end, or to the longest that is played.
        turns: Turns compared with those of an environment in this process.
        cut: Episodes that a killed worker ended in another way than they would have ended.
        errors: Errors by what was said.
    """

    episodes: int = 0
    turns: int = 0
    cut: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Service:
    """One environment: its server, the proxy before it, and what clients have done.

    Args:
        name: Registered name, such as `WebShop`.
        kwargs: Arguments of the environment.
        folder: For the server's log.
        ttl_s: Seconds after which a session that is not used expires.
        restarts: Whether faults may end the server; the memory of one that they may not end is
            held against its bound.
    """

    def __init__(
        self, name: str, kwargs: dict[str, Any], folder: Path, ttl_s: float, *, restarts: bool
    ) -> None:
        self.name, self.kwargs, self.restarts, self.ttl_s = name, kwargs, restarts, ttl_s
        self.env_id = f"agentgyms/{name}-v0"
        self.log = folder / f"{name}.log"
        self.tally = Tally()
        self.workers_killed = 0
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.fates: Counter[str] = Counter()
        self._rng = random.Random(name)
        self._faulty_until, self._kinds = 0.0, QUICK
        self._process: subprocess.Popen[bytes] | None = None
        self.proxy = FaultProxy(self.address, self._fate, read_s=READ_S)

    def begin(self) -> None:
        """Start the server without waiting for it."""
        command = [sys.executable, "-m", "env_servers", self.env_id, "--port", str(self.port)]
        command += ["--ttl", str(self.ttl_s), "--max-sessions", "64"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | {"AGENTGYMS_TOKEN": TOKEN}
            )

    def await_ready(self) -> None:
        """Return when it answers.

        Raises:
            TimeoutError: It does not.
        """
        give_up = time.monotonic() + _STARTS_IN_S
        while True:
            try:
                self._page("/readyz")
                return
            except OSError:
                if time.monotonic() > give_up:
                    raise TimeoutError(f"{self.name} does not start: see {self.log}") from None
                time.sleep(0.2)

    @property
    def pid(self) -> int:
        """Process id of the server."""
        assert self._process is not None
        return self._process.pid

    def memory(self) -> int:
        """Return the memory of the server and its children in bytes, shared pages in parts."""
        return proportional(tree(self.pid))

    def children(self) -> list[int]:
        """Return the processes that descend from the server."""
        return tree(self.pid)[1:]

    def sessions(self) -> int:
        """Return how many sessions the server holds."""
        found = re.search(r"^agentgyms_sessions (\S+)$", self._page("/metrics"), re.M)
        return int(float(found[1])) if found else -1

    def kill(self) -> None:
        """End the server at once, and start it again at its address."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.begin()

    def drain(self) -> None:
        """Ask the server to end, once it has started, and start it again at its address."""
        self.await_ready()
        self.end()
        self.begin()

    def end(self) -> None:
        """Ask the server to end; another exit code than 0 is an error."""
        assert self._process is not None
        self._process.terminate()
        try:
            code: int | str = self._process.wait(_ENDS_IN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = f"none within {_ENDS_IN_S:g} s"
        if code != 0:
            self.tally.errors[f"the server's exit code was {code}"] += 1

    def signal(self, number: int) -> None:
        """Send the server a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def be_faulty(self, seconds: float, *, slow: bool) -> None:
        """Let three requests in ten meet with accidents for some time."""
        self._kinds = SLOW[-1:] if slow else QUICK
        self._faulty_until = time.monotonic() + seconds

    def unexpected(self) -> int:
        """Return how many unexpected errors are in the server's log."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return text.count("unexpected error") + text.count("Traceback (most recent call last)")

    def _fate(self, _: Request) -> str:
        if len(self.proxy.requests) > _KEPT_REQUESTS:
            self.proxy.requests.clear()
        fate = "normal"
        if time.monotonic() < self._faulty_until and self._rng.random() < _FAULTY_RATE:
            fate = self._rng.choice(self._kinds)
        self.fates[fate] += 1
        return fate

    def _page(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.address}{path}", timeout=30) as reply:
            return str(reply.read().decode())
