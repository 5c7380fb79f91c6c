"""Role `engine`: one world of the real AppWorld for one episode, on a root without ground truth.

It builds the same objects as `AppWorld`, without the shell that runs an agent's code: no agent code
runs here. The agent supplies the names and arguments of API calls alone.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import threading
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import fence
from .line import Connection
from .records import Records

SEED = 100
"""Seed of the engine's random numbers, the default of `AppWorld`."""

_CONTROLS = frozenset(
    ["_system_datetime", "raise_on_failure", "track", "client", "show", "_app_name", "_api_name"]
)
"""Keywords that control the engine's requester; they are dropped from an agent's arguments."""

_STATUS = re.compile(r"Response status code is (\d{3}):")


def warm(options: dict[str, Any]) -> None:
    """Import the engine, build its apps and documents, and open and close one world."""
    warnings.simplefilter("ignore")
    os.environ["APPWORLD_ROOT"] = options["root"]
    from appworld import requester

    # Building the app takes more than half of the time of opening a world.
    requester.build_main_app = functools.cache(requester.build_main_app)
    world = EngineWorld(first_task(options["root"]))
    world.call("supervisor", "show_profile", {})
    world.digest()
    world.close()
    close_databases()
    fence.prepare(options["root"], saves=True)


def first_task(root: str) -> str:
    """Return the smallest task id of a root."""
    return min(task.name for task in Path(root, "data", "tasks").iterdir())


def close_databases() -> None:
    """Close the base databases, which must not be shared across a fork, and check for threads."""
    from appworld.apps import model_lib

    model_lib.get_direct_cached_sqlite3_connection.cache_clear()
    model_lib.get_cached_db_engine.cache_clear()
    gc.collect()
    if threading.active_count() != 1:
        raise RuntimeError(f"threads are alive before a fork: {threading.enumerate()}")


def serve(connection: Connection, options: dict[str, Any]) -> None:  # noqa: ARG001 (a role has them)
    """Open the world that the first message names, then answer until the connection ends."""
    message = connection.receive()
    if message is None:
        return
    fence.confine()
    world = EngineWorld(message["open"])
    connection.send({"apis": world.apis, "now": world.task.datetime.isoformat()})
    while (message := connection.receive()) is not None:
        connection.send(_respond(world, message))


def _respond(world: EngineWorld, message: dict[str, Any]) -> dict[str, Any]:
    if "call" in message:
        return world.call(*message["call"])
    if "digest" in message:
        return {"digest": world.digest()}
    world.save(message["save"])
    return {"saved": message["save"]}


class EngineWorld:
    """The apps of one task in this process's memory; a process holds one at a time."""

    def __init__(self, task_id: str) -> None:
        """Load the databases, and set the clock and the random seed, as `AppWorld` does."""
        from appworld.collections.apis import ApiCollection
        from appworld.common.constants import DB_VERSION
        from appworld.task import Task

        self.task = Task.load(task_id, load_ground_truth=False)
        if self.task.db_version != DB_VERSION:
            raise RuntimeError(
                f"task {task_id} was made for databases {self.task.db_version}, the engine has "
                f"{DB_VERSION}"
            )
        self._changes_folder = self.task.models_from_db_home_path
        self._memory = f":memory:task_output-{task_id}"
        self._apis, self._requester = ApiCollection.load(
            to_db_home_path=self._memory,
            from_db_home_path=self._changes_folder,
            date_and_time=self.task.datetime,
            random_seed=SEED,
            load_apps=self.task.allowed_apps,
            max_num_requests=None,
        )
        # A redirect uses the decoded path, which would bypass the check of the arguments.
        self._requester.client.follow_redirects = False
        self.apis = {app: sorted(self._apis[app]) for app in self.task.allowed_apps}
        self._records = Records(self._changes_folder, [*self.task.allowed_apps, "admin"])

    def call(self, app: str, api: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the `value` of an API call, or `raise`: kind, message and HTTP status."""
        if app not in self.apis:
            return {"raise": ["Exception", f"No app named '{app}' found.", 0]}
        if api not in self.apis[app]:
            return {"raise": ["Exception", f"No API named '{api}' found in the {app} app.", 0]}
        try:
            safe = _escaped_arguments(app, api, arguments)
            return {"value": self._apis[app][api](track=False, **safe)}
        except Exception as e:
            kind = type(e).__name__ if type(e).__module__ == "builtins" else "Exception"
            status = _STATUS.match(str(e))
            return {"raise": [kind, str(e), int(status.group(1)) if status else 0]}

    def digest(self) -> str:
        """Return a digest of the changes of the records since the beginning."""
        return self._records.digest()

    def save(self, experiment: str) -> None:
        """Write the changes of all apps to the experiment's folder that `evaluate_task` reads."""
        from appworld.apps.api_lib import save_local_dbs
        from appworld.common.path_store import path_store

        folder = Path(path_store.experiment_outputs, experiment, "tasks", self.task.id, "dbs")
        save_local_dbs(
            from_db_home_path=self._memory,
            to_db_home_path=str(folder),
            format="changes",
            app_names=[*self.task.allowed_apps, "admin"],
            delete_if_exists=True,
            save_model_hashes=True,
        )

    def close(self) -> None:
        """Close the databases, release the clock, and end the thread that serves requests."""
        from appworld.apps.api_lib import clear_local_dbs_cache
        from appworld.requester import Requester

        self._records.close()
        clear_local_dbs_cache()
        Requester.close_all()


def _escaped_arguments(app: str, api: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments, escaped: in a path, `../` or `?` would select another route."""
    from appworld.requester import _get_api_name_to_doc

    path = _get_api_name_to_doc(app, include_private_apis=True)[api]["path"]
    return {
        name: _escaped_segment(value) if f"{{{name}}}" in path else value
        for name, value in arguments.items()
        if name not in _CONTROLS
    }


def _escaped_segment(value: Any) -> str:
    # The engine's client decodes a path twice before routing, so slashes and dots are encoded
    # once more.
    once = quote(str(value).replace("/", "%2F"), safe="").replace(".", "%2E")
    return quote(once, safe="")
