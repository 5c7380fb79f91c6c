"""A child process that answers JSON lines: for engines that leak, crash or need other packages."""

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

from agentgyms import workers
from agentgyms.errors import WorkerLost

_LAST_WORDS_BYTES: Final = 2000
_FAREWELL_S: Final = 2.0
_MOST_STDERR_BYTES: Final = 1 << 20


_running: Final[weakref.WeakSet[Child]] = weakref.WeakSet()


@atexit.register
def kill_all() -> None:
    """Kill the children of this process, which ends: one that hangs would not notice that."""
    for child in list(_running):
        child.kill()


class Child:
    """A running child: one JSON object per line goes in, one comes out.

    The child ends when its input does, so it does not outlive this process, unless this one is
    killed while it hangs.
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
            limit_s: Longest time that an answer may take, the first line included.
            environment: Its environment variables.
            kind: What it does, as `agentgyms.workers` counts it.

        Raises:
            WorkerLost: It did not start or said nothing in time.
        """
        self.limit_s = limit_s
        self._name, self._kind = " ".join(command[:2]), kind
        self._late = False
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
        """Return the answer to a request.

        Raises:
            WorkerLost: The child died, was late, or reports an error of its own; it is ended.
        """
        answer = self._exchange(json.dumps(request))
        if "error" in answer:
            self.close("lost")
            raise WorkerLost(f"{self._name} failed: {answer['error']}")
        return answer

    def _exchange(self, line: str | None) -> dict[str, Any]:
        """Send a line, if there is one, and return the next one that comes."""
        if self._stderr.closed:
            raise WorkerLost(f"{self._name} has ended")
        if os.fstat(self._stderr.fileno()).st_size > _MOST_STDERR_BYTES:
            os.truncate(self._stderr.fileno(), 0)
            self._stderr.seek(0)  # the place where the child writes too: they share it
        timer = threading.Timer(self.limit_s, self._end_late)
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
            raise WorkerLost(self._obituary()) from e
        except BaseException:  # the answer still to come would be taken for that of a later request
            self._process.kill()
            self.close("lost")
            raise
        finally:
            timer.cancel()
        if not isinstance(answer, dict):
            self.close("lost")
            raise WorkerLost(f"{self._name} answered {answer!r:.80}, which is no JSON object")
        return answer

    def _end_late(self) -> None:
        self._late = True
        self._process.kill()

    def _obituary(self) -> str:
        """End the child and return why it is lost."""
        self._process.kill()
        code = self._process.wait()
        self._stderr.seek(0, 2)
        self._stderr.seek(max(0, self._stderr.tell() - _LAST_WORDS_BYTES))
        words = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        self.close("lost")
        if self._late:
            return f"{self._name} did not answer within {self.limit_s:g} s and was ended"
        said = f", its last words: {words[-1]}" if words else ""
        return f"{self._name} died with exit code {code}{said}"

    def kill(self) -> None:
        """Kill the child, if it is this process's own; who waits for an answer is told so."""
        if self._owner == os.getpid():
            self._process.kill()

    def close(self, how: workers.End = "closed") -> None:
        """End the child; a second call does nothing.

        Args:
            how: Why, for the counts of `agentgyms.workers`.
        """
        if self._stderr.closed:
            return
        process = self._process
        if process.poll() is not None:
            how = "lost"  # it ended without being told to
        workers.ended(self._kind, how)
        _running.discard(self)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                with suppress(OSError):  # what could not be written is not needed any more
                    pipe.close()
        try:
            process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._stderr.close()
