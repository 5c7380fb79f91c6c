"""The apps of MiniAppWorld, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentgyms.envs.appworld.mini.api import App
from agentgyms.envs.appworld.mini.apps.api_docs import make_api_docs
from agentgyms.envs.appworld.mini.apps.jukebox import JUKEBOX
from agentgyms.envs.appworld.mini.apps.notebook import NOTEBOOK
from agentgyms.envs.appworld.mini.apps.planner import PLANNER
from agentgyms.envs.appworld.mini.apps.purse import PURSE
from agentgyms.envs.appworld.mini.apps.rolodex import ROLODEX
from agentgyms.envs.appworld.mini.apps.supervisor import SUPERVISOR

_DOCUMENTED: Final = (SUPERVISOR, NOTEBOOK, PURSE, JUKEBOX, ROLODEX, PLANNER)

APPS: Final[Mapping[str, App]] = {
    app.name: app for app in (make_api_docs(_DOCUMENTED), *_DOCUMENTED)
}
"""All apps by name, in the order of the documentation."""

API_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(app.apis) for name, app in APPS.items()
}
"""Names of the APIs of each app, for briefs."""
