"""The HTTP application: one Flask app that serves any environment.

Takes requests; returns replies (`routes`). `operations` does the work for single and batch routes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from env_servers.http.app import create_app

__all__ = ["create_app"]

__getattr__ = lazy_names(__name__, {"env_servers.http.app": "create_app"})
