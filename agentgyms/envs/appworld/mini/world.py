"""A world of MiniAppWorld: the apps of one task, in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgyms.envs.appworld.mini.api import ApiError, Session, Tokens
from agentgyms.envs.appworld.mini.apps import APPS
from agentgyms.envs.appworld.mini.database import Database
from agentgyms.envs.appworld.mini.parameters import shown
from agentgyms.envs.appworld.mini.records import Task
from agentgyms.envs.appworld.mini.tracker import Check, Outcome, report
from agentgyms.envs.appworld.world import ApiResponse, Brief, Report


@dataclass(frozen=True, slots=True)
class MiniTask:
    """A task and its initial records, which worlds copy and nobody changes."""

    brief: Brief
    database: Database
    checks: Sequence[Check]
    salt: str


class MiniWorld:
    """The apps of one task, with the records after the calls so far; implements `World`."""

    alive = True
    """The world is in this process."""

    def __init__(self, task: MiniTask) -> None:
        self._task = task
        self._database = task.database.copy()
        self._tokens = Tokens(task.salt)

    @property
    def brief(self) -> Brief:
        """The task."""
        return self._task.brief

    @property
    def completed(self) -> bool:
        """Whether `supervisor.complete_task` was called."""
        return self._database.of(Task)[1].status != "active"

    @property
    def outcome(self) -> Outcome:
        """The initial and the current records."""
        return Outcome(self._task.database, self._database)

    def call(self, app: str, api: str, arguments: Mapping[str, Any]) -> ApiResponse:
        """Return an API's response; errors of the call are in the response."""
        called = APPS.get(app)
        if called is None:
            return ApiResponse(error=f"No app named '{_name(app)}' found.", status=0)
        found = called.apis.get(api)
        if found is None:
            error = f"No API named '{_name(api)}' found in the {app} app."
            return ApiResponse(error=error, status=0)
        session = Session(self._database, self._task.brief.now, self._tokens)
        try:
            return ApiResponse(value=found(session, arguments))
        except ApiError as error:
            return ApiResponse(error=error.text, status=error.status)

    def digest(self) -> str:
        """Return a digest of all records, the task's status included; logging in changes none."""
        return self._database.digest()

    def report(self) -> Report:
        """Run the checks on the current records, and return their verdicts."""
        return report(self._task.checks, self.outcome)

    def close(self) -> None:
        """Do nothing: the world has no resources outside this process's memory."""


def _name(name: str) -> str:
    return name if len(name) <= 200 else shown(name)
