"""JSON lines over a socket."""

from __future__ import annotations

import json
import select
import socket
import threading
from typing import Any, Final

MAX_BYTES: Final = 16 << 20
"""Longest line in bytes that the other side accepts."""

AGENT_BYTES: Final = 1 << 20
"""Longest line in bytes of a process that runs agents' code."""

AGENT_VALUES: Final = 50_000
"""Most values in such a line: a value takes up to 40 times its bytes once it is parsed."""

_CHUNK: Final = 1 << 16
# Bound here, because an agent's code may replace them in the module.
_encode = json.JSONEncoder().encode
_decode = json.JSONDecoder().decode


def excess(line: bytes) -> str:
    """Return what is too much in a line of a process that runs agents' code, "" if nothing is."""
    if len(line) > AGENT_BYTES:
        return f"{len(line)} bytes, more than {AGENT_BYTES}"
    # Without escapes each quote delimits a string. This counts values before any is parsed.
    outside = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    if outside.count(b'"') <= 2 * AGENT_VALUES:
        pieces = outside.split(b'"')[::2]  # without the strings
        if sum(piece.count(mark) for piece in pieces for mark in b",[{") <= AGENT_VALUES:
            return ""
    return f"more than {AGENT_VALUES} values"


class Connection:
    """One end of a connection that exchanges JSON objects, one per line."""

    def __init__(self, end: socket.socket) -> None:
        self.for_agents = False
        """Whether this process runs agents' code: its lines are bounded by `excess`."""
        self._socket = end
        self._received = b""
        self._busy: int | None = None  # the thread that is reading or writing a message
        self._pending: BaseException | None = None
        self._sending = threading.Lock()

    def fileno(self) -> int:
        """Return the file descriptor of this end."""
        return self._socket.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """Send an object; raise `TypeError` or `ValueError`, and send nothing, if it is no JSON."""
        line = _encode(message).encode() + b"\n"
        if len(line) > MAX_BYTES:
            raise ValueError(f"a message of {len(line)} bytes, more than {MAX_BYTES}")
        if self.for_agents and (too_much := excess(line)):
            raise ValueError(f"a message of {too_much}")
        with self._sending:
            self._busy = threading.get_ident()
            self._socket.sendall(line)
            self._busy = None
        self._raise_pending()

    def receive(self) -> dict[str, Any] | None:
        """Return the next object, None if the other side has closed the connection."""
        while b"\n" not in self._received:
            select.select([self._socket], [], [])
            self._busy = threading.get_ident()
            chunk = self._read()
            self._received += chunk
            self._busy = None
            self._raise_pending()
            if not chunk:
                return None
        line, _, self._received = self._received.partition(b"\n")
        message: dict[str, Any] = _decode(line.decode())
        return message

    def interrupt(self, exception: BaseException) -> None:
        """Raise an exception, but not while a message is read or written; for signal handlers."""
        if self._busy != threading.get_ident():
            raise exception
        self._pending = exception

    def _read(self) -> bytes:
        try:
            return self._socket.recv(_CHUNK)
        except ConnectionError:
            return b""

    def _raise_pending(self) -> None:
        if self._pending is not None:
            exception, self._pending = self._pending, None
            raise exception
