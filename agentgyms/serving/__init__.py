"""An application on a socket, for every listener of the project.

Takes a WSGI application and an address; serves it until a signal, and stops without losing a reply
(`server`). `served` is what an application tells its server, `connection_limits` limits clients,
`guesses` slows wrong tokens, `cross_site` refuses other sites' pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from agentgyms.serving.server import Server

__all__ = ["Server"]

__getattr__ = lazy_names(__name__, {"agentgyms.serving.server": "Server"})
