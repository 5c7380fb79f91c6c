"""A child process of a fork server, and the line to it."""

from __future__ import annotations

import json
import os
import select
import signal as signals
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from agentgyms.appworld.child.line import MOST_BYTES
from agentgyms.errors import WorkerLost
from agentgyms.workers import End

_CHUNK: Final = 1 << 16
_LAST_MOMENT_S: Final = 1.0


class WorkerDied(WorkerLost):
    """A child process ended, was ended for being late, or said what it must not say.

    Attributes:
        signal: The signal that ended it, None if none did. Our own kill is no signal here.
        exit_code: Its exit code, None if it did not exit by itself.
        late: Whether it was killed because it did not answer in time.
    """

    def __init__(
        self,
        message: str,
        *,
        signal: int | None = None,
        exit_code: int | None = None,
        late: bool = False,
    ) -> None:
        super().__init__(message)
        self.signal = signal
        self.exit_code = exit_code
        self.late = late


class Worker:
    """A child process that takes and gives JSON objects. One thread at a time."""

    def __init__(
        self, end: socket.socket, pid: int, ended: Callable[[float, End], int | None]
    ) -> None:
        """Take over a child.

        Args:
            end: Our end of its line.
            pid: Its process id.
            ended: Ends it if it does not end by itself within so many seconds, and counts how it
                ended; returns its wait status, None if it had to be ended.
        """
        self.pid = pid
        self._socket = end
        self._ended = ended
        self._received = b""

    @property
    def alive(self) -> bool:
        """Whether the child holds its end of the line; False once it is closed."""
        return self._socket.fileno() >= 0 and self._peek() != b""

    @property
    def silent(self) -> bool:
        """Whether nothing has come that was not received."""
        return not self._received and not self._peek()

    def _peek(self) -> bytes | None:
        """Return a byte that waits to be read, None if there is none, b"" at the end."""
        try:
            self._socket.settimeout(0)
            return self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def send(self, message: Mapping[str, Any], limit_s: float = 30) -> None:
        """Send an object.

        Args:
            message: JSON-plain.
            limit_s: Longest time until the child has taken it.

        Raises:
            WorkerDied: The child has ended, or did not take it in time.
        """
        try:
            self._socket.settimeout(max(limit_s, 0.001))
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except TimeoutError:
            raise self._late() from None
        except OSError:
            raise self._died() from None

    def receive(self, limit_s: float) -> dict[str, Any]:
        """Return the next object that the child says.

        Args:
            limit_s: Longest time until it has said it.

        Raises:
            WorkerDied: The child has ended, was late, or said something else than an object; it
                is ended.
        """
        deadline = time.monotonic() + limit_s
        if limit_s <= 0:  # one that never stops talking would else never be late
            raise self._late()
        pieces = [self._received]
        length = len(self._received)
        while b"\n" not in pieces[-1]:
            if length > MOST_BYTES:
                raise self.broken(f"said a line of more than {MOST_BYTES} bytes")
            chunk = self._read(deadline)
            pieces.append(chunk)
            length += len(chunk)
        line, _, self._received = b"".join(pieces).partition(b"\n")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise self.broken("said a line that is not JSON") from None
        if not isinstance(message, dict):
            raise self.broken("said a line that is not a JSON object")
        return message

    def _read(self, deadline: float) -> bytes:
        try:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            if not poll.poll(max(deadline - time.monotonic(), 0) * 1000):
                raise self._late()
            chunk = self._socket.recv(_CHUNK)
        except OSError:
            raise self._died() from None
        if not chunk:
            raise self._died()
        return chunk

    def ask(self, message: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        """Return the answer to an object.

        Args:
            message: JSON-plain.
            limit_s: Longest time until the answer.

        Raises:
            WorkerDied: The child has ended, or was late.
            WorkerLost: The answer is an `error` of the child's own; it is ended.
        """
        self.send(message, limit_s)
        answer = self.receive(limit_s)
        if "error" in answer:
            self.close("lost")
            raise WorkerLost(f"the worker {self.pid} failed: {answer['error']}")
        return answer

    def kill(self) -> None:
        """End the child at once; `close` does the same."""
        self.close()

    def close(self, how: End = "closed") -> None:
        """End the child and its line; a second call does nothing.

        Args:
            how: Why, for the counts of `agentgyms.workers`.
        """
        if self._socket.fileno() >= 0:
            self._socket.close()
            self._ended(0, how)

    def broken(self, what: str) -> WorkerDied:
        """End the child, which broke the protocol, and return the error that says so.

        Args:
            what: What it did, such as `said a line that is not JSON`.
        """
        self.close("lost")
        return WorkerDied(f"the worker {self.pid} was ended: it {what}")

    def _late(self) -> WorkerDied:
        self.close("lost")
        return WorkerDied(f"the worker {self.pid} was ended: it did not answer in time", late=True)

    def _died(self) -> WorkerDied:
        if self._socket.fileno() < 0:
            return WorkerDied(f"the worker {self.pid} was ended before")
        self._socket.close()
        # It closes its line a moment before it has ended; one that only closed it runs on.
        status = self._ended(_LAST_MOMENT_S, "lost")
        if status is None:
            return WorkerDied(f"the worker {self.pid} was ended: it closed its line")
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return WorkerDied(f"the worker {self.pid} died of {_name(number)}", signal=number)
        code = os.WEXITSTATUS(status)
        return WorkerDied(f"the worker {self.pid} exited with {code}", exit_code=code)


def _name(number: int) -> str:
    with suppress(ValueError):
        return signals.Signals(number).name
    return f"signal {number}"
