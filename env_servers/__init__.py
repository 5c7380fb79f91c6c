"""One generic HTTP server for every environment; see `create_app` and `python -m env_servers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gymnasium.error import DependencyNotInstalled

from agentgyms.core import imports
from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from agentgyms.serving.server import Server
    from env_servers.http.app import create_app

__all__ = ["Server", "create_app"]

_import: Final = lazy_names(
    __name__, {"agentgyms.serving.server": "Server", "env_servers.http.app": "create_app"}
)


def __getattr__(name: str) -> Any:
    """Import an attribute on first use, so that programs can report a missing extra `server`."""
    try:
        return _import(name)
    except ModuleNotFoundError as e:
        message = imports.advice(e, "server")
        if not message:
            raise
        raise DependencyNotInstalled(message) from e
