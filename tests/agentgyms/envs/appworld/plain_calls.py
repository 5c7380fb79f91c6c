"""Makes odd calls, then plays solutions, in plain `AppWorld` worlds; run in AppWorld's Python.

On stdin: the calls of each task. Printed last: all calls with their answers, and the tests.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import appworld
from appworld.requester import Requester

ask = Requester.request


def play(task: str, calls: list[Any]) -> dict[str, Any]:
    told: list[Any] = []

    def request(
        requester: Any, _app_name: str, _api_name: str, track: bool = True, **arguments: Any
    ) -> Any:
        arguments.pop("raise_on_failure", None)
        try:
            value = ask(requester, _app_name, _api_name, track=track, **arguments)
        except Exception as e:
            told.append([_app_name, _api_name, arguments, None, str(e)])
            raise
        told.append([_app_name, _api_name, arguments, value, ""])
        return value

    Requester.request = request
    ground_truth = Path(os.environ["APPWORLD_ROOT"], "data", "tasks", task, "ground_truth")
    blocks = json.loads((ground_truth / "solution_blocks.json").read_text())
    with appworld.AppWorld(task, experiment_name="plain-calls") as world:
        for app, api, arguments in calls:
            with suppress(Exception):
                world.apis[app][api](**arguments)
        for block in blocks:
            world.execute(block)
        return {"told": told, "tests": world.evaluate().to_dict()}


if __name__ == "__main__":
    found = {task: play(task, calls) for task, calls in json.load(sys.stdin).items()}
    print("\n" + json.dumps(found))  # noqa: T201
    sys.stdout.flush()
    os._exit(0)
