"""Sessions: the environments of a server's clients.

Takes operations on a session id; returns the environment's replies, each turn played once
(`session`). `sessions` opens, finds and expires them, `service` has what an application shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from env_servers.sessions.service import Service
    from env_servers.sessions.session import Session
    from env_servers.sessions.sessions import Sessions

__all__ = ["Service", "Session", "Sessions"]

__getattr__ = lazy_names(
    __name__,
    {
        "env_servers.sessions.service": "Service",
        "env_servers.sessions.session": "Session",
        "env_servers.sessions.sessions": "Sessions",
    },
)
