"""One generic HTTP server for every environment; see `create_app` and `python -m env_servers`."""

from __future__ import annotations

from gymnasium.error import DependencyNotInstalled

try:
    from env_servers.app import create_app
    from env_servers.serving import Server
except ModuleNotFoundError as e:
    if e.name not in ("flask", "prometheus_client", "waitress", "werkzeug"):
        raise
    raise DependencyNotInstalled(
        f'{e.name} is not installed, run `pip install "agentgyms[server]"`'
    ) from e

__all__ = ["Server", "create_app"]
