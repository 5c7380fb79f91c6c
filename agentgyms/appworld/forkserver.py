"""Child processes that start in milliseconds: forks of a warmed server, one per episode.

    this process ── control ──> fork server ──> child
          └───────────── line ───────────────────┘

A child is never used twice, so each episode has a pristine process; what the server has loaded is
shared with its children, copy on write. Linux and macOS; Windows has no fork.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final

from agentgyms import workers
from agentgyms.appworld.roles import role_command, role_environment
from agentgyms.appworld.worker import Worker, WorkerDied
from agentgyms.errors import EnvUnavailable, WorkerLost

__all__ = ["ForkServer", "Worker", "WorkerDied", "role_command", "role_environment"]

_FAREWELL_S: Final = 2.0
_END_LIMIT_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.002
_LAST_WORDS_BYTES: Final = 2000


class ForkServer:
    """A warmed process that forks children of one role. Safe with threads.

    After a fork of this process itself (`multiprocessing`), the new process starts a server of its
    own on first use, and leaves this one alone.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        start_limit_s: float = 120,
        forks: int = 200,
        kind: str = "worker",
    ) -> None:
        """Nothing starts before the first use.

        Args:
            command: Of the server, from `role_command`.
            environment: All its environment variables.
            start_limit_s: Longest time until it is warm.
            forks: Children that one server process makes before another takes its place, at least
                1: what a server leaks, it leaks that often at most.
            kind: What its children do, as `agentgyms.workers` counts them.
        """
        self._command = list(command)
        self._environment = dict(environment)
        self._start_limit_s = start_limit_s
        self._forks = forks
        self._kind = kind
        self._forget()
        _servers.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._current: _Process | None = None
        self._retired: list[_Process] = []

    def warm(self) -> None:
        """Start the server if it does not run, and wait until it is warm.

        Raises:
            WorkerLost: It did not start, or not in time.
            EnvUnavailable: This system cannot fork.
        """
        with self._lock:
            self._server()

    def fork(self, limit_s: float = 30) -> Worker:
        """Return a new child.

        Args:
            limit_s: Longest time that it may take, once the server is warm.

        Raises:
            WorkerLost: The server did not start, or did not fork in time.
            EnvUnavailable: This system cannot fork.
        """
        with self._lock:
            process = self._server()
            try:
                return process.fork(limit_s)
            except WorkerLost:
                # Killed since the last use: its successor deserves the attempt.
                return self._server().fork(limit_s)

    def close(self) -> None:
        """End the server and its children; the next use starts another."""
        with self._lock:
            for process in self._processes():
                process.close()
            self._retired.clear()
            self._current = None

    def _processes(self) -> list[_Process]:
        return [*self._retired, *([self._current] if self._current else [])]

    @property
    def pid(self) -> int | None:
        """Process id of the server; None if none runs."""
        return self._current.pid if self._current is not None and self._current.alive else None

    def _server(self) -> _Process:
        """Return a server that is warm and may fork once more."""
        for process in [p for p in self._retired if not p.children]:
            process.close("recycled")
            self._retired.remove(process)
        if self._current is not None and not self._current.alive:
            self._current.close("lost")
            self._current = None
        if self._current is not None and self._current.forked >= self._forks:
            self._retired.append(self._current)  # its children would end with it
            self._current = None
        if self._current is None:
            self._current = _Process(
                self._command, self._environment, self._start_limit_s, self._kind
            )
        return self._current


_servers: weakref.WeakSet[ForkServer] = weakref.WeakSet()


def _leave_all() -> None:
    """Let go, in a fork of this process, of servers that are its parent's."""
    for server in _servers:
        for process in server._processes():
            process.leave()
        server._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


def _scratch_file() -> IO[bytes]:
    """Return a file without a name, in memory where the system can: there may be no disk."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("last words"), "w+b")
    return tempfile.TemporaryFile()


class _Process:
    """One process of a fork server."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], limit_s: float, kind: str
    ) -> None:
        if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
            raise EnvUnavailable(f"fork servers need Linux or macOS, this is {sys.platform}")
        self._lock = threading.Lock()
        self._kind = kind
        self._received = b""
        self._lost = False
        self.forked = 0
        self.children: set[int] = set()
        self._stderr = _scratch_file()
        self._control, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                env=dict(environment),
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for this process, which then ends its own
            )
        except OSError as e:
            self._control.close()
            self._stderr.close()
            raise WorkerLost(f"{command[0]} cannot be started: {e}") from e
        finally:
            theirs.close()
        self.pid = self._process.pid
        workers.started(f"{kind}-server")
        try:
            self._answer(limit_s)
        except WorkerLost:
            self.close("lost")
            raise

    @property
    def alive(self) -> bool:
        """Whether the process runs and answers."""
        return not self._lost and self._process.poll() is None

    def fork(self, limit_s: float) -> Worker:
        """Return a new child."""
        ours, theirs = socket.socketpair()
        try:
            with self._lock:
                self.forked += 1
                child = self.forked
                answer = self._ask("fork", child, limit_s, theirs.fileno())
                self.children.add(child)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        workers.started(self._kind)
        return Worker(ours, answer["pid"], lambda wait_s, how: self._end(child, wait_s, how))

    def _end(self, child: int, wait_s: float, how: workers.End) -> int | None:
        """End a child that does not end within `wait_s`: its wait status, None if it had to be."""
        workers.ended(self._kind, how)
        deadline = time.monotonic() + wait_s
        try:
            while time.monotonic() < deadline:
                with self._lock:
                    if not self._ask("look", child, _END_LIMIT_S)["running"]:
                        break
                time.sleep(_LOOK_EVERY_S)
            with self._lock:
                self.children.discard(child)
                status = self._ask("end", child, _END_LIMIT_S)["status"]
        except WorkerLost:
            self.children.discard(child)
            return int(signal.SIGKILL)  # it went with its server
        return None if status is None else int(status)

    def _ask(self, what: str, child: int, limit_s: float, *ends: int) -> dict[str, Any]:
        request = json.dumps({"do": what, "child": child}).encode() + b"\n"
        try:
            self._control.settimeout(limit_s)
            socket.send_fds(self._control, [request], ends)
        except OSError as e:
            self._give_up()
            raise WorkerLost(f"the fork server {self.pid} has ended: {e}") from e
        return self._answer(limit_s)

    def _answer(self, limit_s: float) -> dict[str, Any]:
        try:
            self._control.settimeout(limit_s)
            while b"\n" not in self._received:
                chunk = self._control.recv(1 << 16)
                if not chunk:
                    self._lost = True
                    raise WorkerLost(f"the fork server {self.pid} ended{self._last_words()}")
                self._received += chunk
        except OSError as e:
            self._give_up()
            raise WorkerLost(
                f"the fork server {self.pid} said nothing in {limit_s:g} s: {e}"
            ) from e
        line, _, self._received = self._received.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _give_up(self) -> None:
        # An answer that comes later would be taken for that to the next question.
        self._lost = True
        self._process.kill()

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL_S)
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _LAST_WORDS_BYTES))
        words = self._stderr.read().decode(errors="replace").strip()
        return f": {words}" if words else ""

    def leave(self) -> None:
        """Close what this process holds of it, and leave it running."""
        self._process.returncode = 0  # another process's child: it cannot be waited for
        self._control.close()
        self._stderr.close()

    def close(self, how: workers.End = "closed") -> None:
        """End the process and its children."""
        workers.ended(f"{self._kind}-server", how)
        self._control.close()
        try:
            self._process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()
