"""The scenarios of the generated tasks, in the data sets' order."""

from __future__ import annotations

from ..tasks import SCENARIOS
from . import one_app, one_app_many, several_apps, unseen_apps

__all__ = ["SCENARIOS", "one_app", "one_app_many", "several_apps", "unseen_apps"]
