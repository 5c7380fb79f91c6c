"""Fork servers: child processes that start in milliseconds, one per episode.

    this process ── control ──> fork server ──> child
          └────────── connection ────────────────┘

A child is never reused, so each episode has a fresh process; the modules that the server has loaded
are shared with its children, copy on write. Linux and macOS; Windows has no fork.
"""

from __future__ import annotations

import functools
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

from agentgyms.core.errors import EnvUnavailable, WorkerLost
from agentgyms.envs.appworld.sandbox.commands import role_command, role_environment
from agentgyms.envs.appworld.sandbox.worker import Worker, WorkerDied
from agentgyms.processes import workers

__all__ = ["ForkServer", "Worker", "WorkerDied", "role_command", "role_environment"]

_EXIT_WAIT_S: Final = 2.0
_END_LIMIT_S: Final = 10.0
_POLL_S: Final = 0.002
_STDERR_TAIL_BYTES: Final = 2000


class ForkServer:
    """A server process that forks children of one role; thread-safe.

    After a fork of this process itself (`multiprocessing`), the new process starts another server
    on first use, and does not touch this one.
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
        """Store the arguments; the server starts at the first use.

        `command` is from `role_command`, `environment` has all variables. It is ready within
        `start_limit_s`. After `forks` children (1 or more) another server process replaces it: this
        bounds its leaks. `kind` names its children in the counts of `agentgyms.processes.workers`.
        """
        self._command = list(command)
        self._environment = dict(environment)
        self._start_limit_s = start_limit_s
        self._forks = forks
        self._kind = kind
        self._reset()
        _servers.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._current: _Process | None = None
        self._retired: list[_Process] = []

    def warm(self) -> None:
        """Start the server and wait for it; raise `EnvUnavailable` if this system cannot fork."""
        with self._lock:
            self._server()

    def fork(self, limit_s: float = 30) -> Worker:
        """Return a new child; `limit_s` counts once the server is ready."""
        with self._lock:
            process = self._server()
            try:
                return process.fork(limit_s)
            except WorkerLost:
                # The server was killed since its last use: try a new one.
                return self._server().fork(limit_s)

    def close(self) -> None:
        """End the server and its children; the next use starts another server."""
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


def _detach_all() -> None:
    """In a fork of this process, detach from the servers of the parent."""
    for server in _servers:
        for process in server._processes():
            process.detach()
        server._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_detach_all)


def _scratch_file() -> IO[bytes]:
    """Return a temporary file without a name, in memory if the system supports it."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stderr"), "w+b")
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
                start_new_session=True,  # Ctrl-C is for this process, which then ends the server
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
            self._receive_response(limit_s)
        except WorkerLost:
            self.close("lost")
            raise

    @property
    def alive(self) -> bool:
        return not self._lost and self._process.poll() is None

    def fork(self, limit_s: float) -> Worker:
        ours, theirs = socket.socketpair()
        try:
            with self._lock:
                self.forked += 1
                child = self.forked
                response = self._request("fork", child, limit_s, theirs.fileno())
                self.children.add(child)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        workers.started(self._kind)
        return Worker(
            ours,
            response["pid"],
            functools.partial(self._end, child),
            functools.partial(self._signal, child),
        )

    def _signal(self, child: int, operation: str) -> None:
        with self._lock, suppress(WorkerLost):  # then the child ends with its server
            self._request(operation, child, _END_LIMIT_S)

    def _end(self, child: int, wait_s: float, reason: workers.End) -> int | None:
        """Wait `wait_s` for a child to end, or kill it; return its wait status, None if killed."""
        workers.ended(self._kind, reason)
        deadline = time.monotonic() + wait_s
        try:
            while time.monotonic() < deadline:
                with self._lock:
                    if not self._request("look", child, _END_LIMIT_S)["running"]:
                        break
                time.sleep(_POLL_S)
            with self._lock:
                self.children.discard(child)
                status = self._request("end", child, _END_LIMIT_S)["status"]
        except WorkerLost:
            self.children.discard(child)
            return int(signal.SIGKILL)  # it ended with its server
        return None if status is None else int(status)

    def _request(self, operation: str, child: int, limit_s: float, *ends: int) -> dict[str, Any]:
        request = json.dumps({"do": operation, "child": child}).encode() + b"\n"
        try:
            self._control.settimeout(limit_s)
            socket.send_fds(self._control, [request], ends)
        except OSError as e:
            self._mark_lost()
            raise WorkerLost(f"the fork server {self.pid} has ended: {e}") from e
        return self._receive_response(limit_s)

    def _receive_response(self, limit_s: float) -> dict[str, Any]:
        try:
            self._control.settimeout(limit_s)
            while b"\n" not in self._received:
                chunk = self._control.recv(1 << 16)
                if not chunk:
                    self._lost = True
                    raise WorkerLost(f"the fork server {self.pid} ended{self._stderr_tail()}")
                self._received += chunk
        except OSError as e:
            self._mark_lost()
            raise WorkerLost(
                f"the fork server {self.pid} sent no response in {limit_s:g} s: {e}"
            ) from e
        line, _, self._received = self._received.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _mark_lost(self) -> None:
        # A late response would be mistaken for that to the next request.
        self._lost = True
        self._process.kill()

    def _stderr_tail(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_WAIT_S)
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_TAIL_BYTES))
        text = self._stderr.read().decode(errors="replace").strip()
        return f": {text}" if text else ""

    def detach(self) -> None:
        """Close this process's file descriptors of it, and leave it running."""
        self._process.returncode = 0  # a child of another process cannot be waited for
        self._control.close()
        self._stderr.close()

    def close(self, reason: workers.End = "closed") -> None:
        workers.ended(f"{self._kind}-server", reason)
        self._control.close()
        try:
            self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()
