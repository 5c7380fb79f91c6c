"""A child process with a JSON-lines protocol, for engines that leak, crash or need packages."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentgyms.core.errors import WorkerLost
from agentgyms.processes import workers

_STDERR_TAIL_BYTES: Final = 2000
_EXIT_TIMEOUT_S: Final = 2.0
_MAX_STDERR_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 16


_running: Final[weakref.WeakSet[Child]] = weakref.WeakSet()


@atexit.register
def kill_all() -> None:
    """Kill all children at process exit: a hanging child would not notice the end of its input."""
    for child in list(_running):
        child.kill()


def _leave_all() -> None:
    """Leave the children to the process that this one was forked from."""
    for child in list(_running):
        child.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


class Child:
    """A running child: each request and each response is one line with a JSON object.

    It exits at the end of its input, so it does not outlive this process, unless that is killed
    while the child hangs. It belongs to the process that started it, and to none forked from that
    one.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        limit_s: float,
        environment: Mapping[str, str],
        kind: str = "child",
    ) -> None:
        """Start `command`; raise `WorkerLost` if there is no first line within `limit_s`.

        `limit_s` is also the timeout of each response. Metrics count the child under its `kind`.
        """
        self.limit_s = limit_s
        self._name, self._kind = " ".join(command[:2]), kind
        # Unbuffered files have no locks, which another thread may hold when this process is forked.
        self._stderr = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed with the child)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=dict(environment),
                bufsize=0,
            )
        except OSError as e:
            self._stderr.close()
            raise WorkerLost(f"{self._name} cannot be started: {e}") from e
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._unread = b""
        os.set_blocking(self._input.fileno(), False)
        workers.started(kind)
        _running.add(self)
        self.greeting = self._exchange(None)

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code, the negative number of the signal that ended it; None while it runs."""
        return self._process.poll()

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to a request; raise `WorkerLost` and end the child if that fails."""
        answer = self._exchange(json.dumps(request))
        if "error" in answer:
            self.close("lost")
            raise WorkerLost(f"{self._name} failed: {answer['error']}")
        return answer

    def _exchange(self, line: str | None) -> dict[str, Any]:
        """Send a line, unless it is None, and return the next line as JSON."""
        if self._stderr.closed:
            raise WorkerLost(f"{self._name} has ended")
        if os.fstat(self._stderr.fileno()).st_size > _MAX_STDERR_BYTES:
            # a chatty engine must not fill the disk
            os.truncate(self._stderr.fileno(), 0)
            self._stderr.seek(0)  # the child shares this file position
        end = time.monotonic() + self.limit_s
        try:
            if line is not None:
                self._send(line.encode() + b"\n", end)
            answer = json.loads(self._receive(end).decode())
        except (OSError, ValueError) as e:
            raise WorkerLost(self._end_and_explain(isinstance(e, TimeoutError))) from e
        except BaseException:  # the pending response would be read as that of the next request
            self._process.kill()
            self.close("lost")
            raise
        if not isinstance(answer, dict):
            self.close("lost")
            raise WorkerLost(f"{self._name} answered {answer!r:.80}, which is no JSON object")
        return answer

    def _send(self, data: bytes, end: float) -> None:
        rest = memoryview(data)
        while rest:
            _wait(self._input.fileno(), select.POLLOUT, end)
            rest = rest[os.write(self._input.fileno(), rest) :]

    def _receive(self, end: float) -> bytes:
        """Return the next line, or what came of it before the child's end."""
        parts = [self._unread]
        while b"\n" not in parts[-1]:
            _wait(self._output.fileno(), select.POLLIN, end)
            part = os.read(self._output.fileno(), _READ_BYTES)
            if not part:
                break
            parts.append(part)
        line, _, self._unread = b"".join(parts).partition(b"\n")
        return line

    def _end_and_explain(self, timed_out: bool) -> str:
        self._process.kill()
        code = self._process.wait()
        self._stderr.seek(0, 2)
        self._stderr.seek(max(0, self._stderr.tell() - _STDERR_TAIL_BYTES))
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        self.close("lost")
        if timed_out:
            return f"{self._name} did not answer within {self.limit_s:g} s and was killed"
        tail = f", last line of stderr: {lines[-1]}" if lines else ""
        return f"{self._name} died with exit code {code}{tail}"

    def kill(self) -> None:
        """Kill the child; a pending request raises `WorkerLost`."""
        self._process.kill()

    def leave(self) -> None:
        """Forget the child in a process that was forked: the end of its input is the parent's."""
        self._process.returncode = 0  # nothing to wait for
        for file in (self._input, self._output, self._stderr):
            file.close()
        _running.discard(self)

    def close(self, how: workers.End = "closed") -> None:
        """Terminate the child for the reason `how`; a second call does nothing."""
        if self._stderr.closed:
            return
        process = self._process
        if process.poll() is not None:
            how = "lost"  # it exited by itself
        workers.ended(self._kind, how)
        _running.discard(self)
        self._input.close()
        self._output.close()
        try:
            process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._stderr.close()


def _wait(descriptor: int, event: int, end: float) -> None:
    """Wait until a pipe can be read or written; raise `TimeoutError` at the time `end`."""
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
        raise TimeoutError
