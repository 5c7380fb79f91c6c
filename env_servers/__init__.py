"""One generic HTTP server for every environment; see `create_app` and `python -m env_servers`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from gymnasium.error import DependencyNotInstalled

from agentgyms import extras

if TYPE_CHECKING:
    from env_servers.app import create_app
    from env_servers.serving import Server

__all__ = ["Server", "create_app"]

_PLACES: Final = {"Server": "env_servers.serving", "create_app": "env_servers.app"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: the programs of this package begin without the extra, and say so.

    Raises:
        DependencyNotInstalled: A package of the extra `server` is missing.
    """
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as e:
        said = extras.advice(e, "server")
        if not said:
            raise
        raise DependencyNotInstalled(said) from e
