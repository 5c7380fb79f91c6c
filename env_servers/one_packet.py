"""Replies of waitress that leave in one packet, for which a client wakes up once."""

from __future__ import annotations

from typing import Any

from waitress.channel import HTTPChannel
from waitress.task import ErrorTask, Task, WSGITask

from env_servers.unreadable import Parser


class _OnePacket(Task):  # type: ignore[misc]  # waitress has no types
    """A request and its reply."""

    channel: Any

    def write(self, data: bytes) -> None:
        """Send a part of the body, the first one together with the head."""
        channel, self.channel = self.channel, _Parts(self.channel)
        try:
            super().write(data)
        finally:
            parts, self.channel = self.channel, channel
        channel.write_soon(b"".join(parts))


class _Request(_OnePacket, WSGITask):  # type: ignore[misc]
    """A request that the application answers."""


class _Mistake(_OnePacket, ErrorTask):  # type: ignore[misc]
    """A request that waitress answers itself."""


class _Parts(list[bytes]):
    """Stands for a connection, and keeps what is written to it."""

    def __init__(self, channel: Any) -> None:
        super().__init__()
        self.server = channel.server

    def write_soon(self, data: bytes) -> None:
        """Keep a part."""
        self.append(data)


class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection whose replies have the head and the beginning of the body in one write."""

    task_class, error_task_class = _Request, _Mistake
    parser_class = Parser
