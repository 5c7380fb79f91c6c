"""An application on a socket.

Takes a WSGI application and an address; serves it with waitress until a signal, and stops without
losing a reply (`server`). `connection_limits` limits what clients may use, `command_lines` starts
the programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from env_servers.serving.server import Server

__all__ = ["Server"]

__getattr__ = lazy_names(__name__, {"env_servers.serving.server": "Server"})
