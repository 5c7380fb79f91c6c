"""A child process of a fork server, and the connection to it."""

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

from agentgyms.core.errors import WorkerLost
from agentgyms.envs.appworld.sandbox.child.line import AGENT_BYTES, MAX_BYTES, excess
from agentgyms.processes.workers import End

_CHUNK: Final = 1 << 16
_END_WAIT_S: Final = 1.0


class WorkerDied(WorkerLost):
    """A child process ended, timed out, or violated the protocol.

    `signal` is None if this class killed it; `exit_code` is None if it did not exit by itself.
    """

    def __init__(
        self,
        message: str,
        *,
        signal: int | None = None,
        exit_code: int | None = None,
        timed_out: bool = False,
    ) -> None:
        super().__init__(message)
        self.signal = signal
        self.exit_code = exit_code
        self.timed_out = timed_out


class Worker:
    """A child process that exchanges JSON objects; not thread-safe."""

    for_agents = False
    """Whether the child runs agents' code: its lines are bounded by `child.line.excess`."""

    def __init__(
        self,
        end: socket.socket,
        pid: int,
        ended: Callable[[float, End], int | None],
        signalled: Callable[[str], None],
    ) -> None:
        """Store the parts.

        `ended` waits up to so many seconds for the child to end, kills it if it does not, counts
        the end, and returns the wait status, None if it was killed. `signalled` stops the child
        (`pause`) or continues it (`resume`).
        """
        self.pid = pid
        self._socket = end
        self._ended = ended
        self._signalled = signalled
        self._paused = False
        self._received = b""
        self.last_bytes = 0
        """Length of the line that was received last."""

    @property
    def alive(self) -> bool:
        """Whether the connection is open on both sides."""
        return self._socket.fileno() >= 0 and self._peek() != b""

    @property
    def idle(self) -> bool:
        """Whether no message is waiting."""
        return not self._received and not self._peek()

    def _peek(self) -> bytes | None:
        """Return the next byte without reading it, None if there is none, b"" at the end."""
        try:
            self._socket.settimeout(0)
            return self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def send(self, message: Mapping[str, Any], limit_s: float = 30) -> None:
        """Send an object; raise `WorkerDied` if the child did not receive it in time."""
        try:
            self._socket.settimeout(max(limit_s, 0.001))
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except TimeoutError:
            raise self._timed_out() from None
        except OSError:
            raise self._ended_error() from None

    def receive(self, limit_s: float) -> dict[str, Any]:
        """Return the next object from the child.

        Raises `WorkerDied` if the child has ended, timed out, or sent anything but an object; it is
        killed.
        """
        deadline = time.monotonic() + limit_s
        if limit_s <= 0:  # else a child that sends without end would never time out
            raise self._timed_out()
        most = AGENT_BYTES if self.for_agents else MAX_BYTES
        pieces = [self._received]
        length = len(self._received)
        while b"\n" not in pieces[-1]:
            if length > most:
                raise self.protocol_error(f"sent a line of more than {most} bytes")
            chunk = self._read(deadline)
            pieces.append(chunk)
            length += len(chunk)
        line, _, self._received = b"".join(pieces).partition(b"\n")
        self.last_bytes = len(line)
        if self.for_agents and (too_much := excess(line)):
            raise self.protocol_error(f"sent a line of {too_much}")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise self.protocol_error("sent a line that is not JSON") from None
        if not isinstance(message, dict):
            raise self.protocol_error("sent a line that is not a JSON object")
        return message

    def _read(self, deadline: float) -> bytes:
        try:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            if not poll.poll(max(deadline - time.monotonic(), 0) * 1000):
                raise self._timed_out()
            chunk = self._socket.recv(_CHUNK)
        except OSError:
            raise self._ended_error() from None
        if not chunk:
            raise self._ended_error()
        return chunk

    def request(self, message: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        """Return the response; raise `WorkerDied`, or `WorkerLost` if it is the child's `error`."""
        self.send(message, limit_s)
        response = self.receive(limit_s)
        if "error" in response:
            self.close("lost")
            raise WorkerLost(f"the worker {self.pid} failed: {response['error']}")
        return response

    def pause(self) -> None:
        """Stop the child: it gets no CPU time until `resume`, and can still be killed."""
        self._paused = True
        self._signalled("pause")

    def resume(self) -> None:
        """Continue a child that was stopped."""
        if self._paused:
            self._paused = False
            self._signalled("resume")

    def kill(self) -> None:
        """Kill the child; `close` does the same."""
        self.close()

    def close(self, reason: End = "closed") -> None:
        """Kill the child and close the connection; a second call does nothing."""
        if self._socket.fileno() >= 0:
            self._socket.close()
            self._ended(0, reason)

    def protocol_error(self, what: str) -> WorkerDied:
        """Kill the child because it violated the protocol, and return the error."""
        self.close("lost")
        return WorkerDied(f"the worker {self.pid} was ended: it {what}")

    def _timed_out(self) -> WorkerDied:
        self.close("lost")
        return WorkerDied(
            f"the worker {self.pid} was ended: it did not respond in time", timed_out=True
        )

    def _ended_error(self) -> WorkerDied:
        if self._socket.fileno() < 0:
            return WorkerDied(f"the worker {self.pid} was ended before")
        self._socket.close()
        # The connection closes just before the process ends; a child may also only close it.
        status = self._ended(_END_WAIT_S, "lost")
        if status is None:
            return WorkerDied(f"the worker {self.pid} was ended: it closed its connection")
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return WorkerDied(f"the worker {self.pid} died of {_name(number)}", signal=number)
        code = os.WEXITSTATUS(status)
        return WorkerDied(f"the worker {self.pid} exited with {code}", exit_code=code)


def _name(number: int) -> str:
    with suppress(ValueError):
        return signals.Signals(number).name
    return f"signal {number}"
