"""A child process with a JSON-lines protocol, for engines that leak, crash or need packages."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from agentgyms.core.errors import WorkerLost
from agentgyms.processes import workers

_STDERR_TAIL_BYTES: Final = 2000
_EXIT_TIMEOUT_S: Final = 2.0
_MAX_STDERR_BYTES: Final = 1 << 20


_running: Final[weakref.WeakSet[Child]] = weakref.WeakSet()


@atexit.register
def kill_all() -> None:
    """Kill all children at process exit: a hanging child would not notice the end of its input."""
    for child in list(_running):
        child.kill()


class Child:
    """A running child: each request and each response is one line with a JSON object.

    The child exits at the end of its input, so it does not outlive this process, unless this
    process is killed while the child hangs.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        limit_s: float,
        environment: Mapping[str, str],
        kind: str = "child",
    ) -> None:
        """Start `command` and wait for its first line.

        Args:
            command: Program and arguments.
            limit_s: Timeout of each response, the first line included.
            environment: Its environment variables.
            kind: Kind under which `agentgyms.processes.workers` counts it.

        Raises:
            WorkerLost: It did not start, or sent no first line before the timeout.
        """
        self.limit_s = limit_s
        self._name, self._kind = " ".join(command[:2]), kind
        self._timed_out = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the child)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=dict(environment),
                encoding="utf-8",
            )
        except OSError as e:
            self._stderr.close()
            raise WorkerLost(f"{self._name} cannot be started: {e}") from e
        workers.started(kind)
        self._owner = os.getpid()
        _running.add(self)
        self.greeting = self._exchange(None)

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the response.

        Raises `WorkerLost` if the child died, timed out or reported an error; it is terminated.
        """
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
        timer = threading.Timer(self.limit_s, self._kill_on_timeout)
        timer.daemon = True
        timer.start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if line is not None:
                process.stdin.write(line + "\n")
                process.stdin.flush()
            answer = json.loads(process.stdout.readline())
        except (OSError, ValueError) as e:
            raise WorkerLost(self._end_and_explain()) from e
        except BaseException:  # the pending response would be read as that of the next request
            self._process.kill()
            self.close("lost")
            raise
        finally:
            timer.cancel()
        if not isinstance(answer, dict):
            self.close("lost")
            raise WorkerLost(f"{self._name} answered {answer!r:.80}, which is no JSON object")
        return answer

    def _kill_on_timeout(self) -> None:
        self._timed_out = True
        self._process.kill()

    def _end_and_explain(self) -> str:
        """Kill the child and return the error message."""
        self._process.kill()
        code = self._process.wait()
        self._stderr.seek(0, 2)
        self._stderr.seek(max(0, self._stderr.tell() - _STDERR_TAIL_BYTES))
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        self.close("lost")
        if self._timed_out:
            return f"{self._name} did not answer within {self.limit_s:g} s and was killed"
        tail = f", last line of stderr: {lines[-1]}" if lines else ""
        return f"{self._name} died with exit code {code}{tail}"

    def kill(self) -> None:
        """Kill the child if this process started it; a pending request raises `WorkerLost`."""
        if self._owner == os.getpid():
            self._process.kill()

    def close(self, how: workers.End = "closed") -> None:
        """Terminate the child; a second call does nothing.

        Args:
            how: The reason, for the counts of `agentgyms.processes.workers`.
        """
        if self._stderr.closed:
            return
        process = self._process
        if process.poll() is not None:
            how = "lost"  # it exited by itself
        workers.ended(self._kind, how)
        _running.discard(self)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                with suppress(OSError):  # unsent data is not needed any more
                    pipe.close()
        try:
            process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._stderr.close()
