"""Role `evaluator`: runs the tests on one saved world, with ground truth and no agent code."""

from __future__ import annotations

import os
import traceback
import warnings
from pathlib import Path
from typing import Any

from . import fence
from .engine import close_databases, first_task
from .line import Connection


def warm(options: dict[str, Any]) -> None:
    """Import the engine and load one task's databases once."""
    warnings.simplefilter("ignore")
    os.environ["APPWORLD_ROOT"] = options["root"]
    from appworld import evaluator
    from appworld.apps.api_lib import clear_local_dbs_cache
    from appworld.task import Task

    # The traces of failed tests are not used, and making them reads many source files.
    evaluator.build_fail_trace = lambda exception: ""  # noqa: ARG005 (called with it)
    assert Task.load(first_task(options["root"])).model_collection
    clear_local_dbs_cache()
    close_databases()
    fence.prepare(options["root"], saves=False)


def serve(connection: Connection, options: dict[str, Any]) -> None:  # noqa: ARG001 (a role has them)
    """Respond to one request with the verdicts on a task's world, saved as an experiment."""
    message = connection.receive()
    if message is not None:
        fence.confine()
        connection.send({"verdicts": verdicts(*message["evaluate"])})


def verdicts(task_id: str, experiment: str) -> list[list[Any]]:
    """Return the requirement of each test, whether it is met, and its label."""
    from appworld import evaluate_task
    from appworld.task import Task

    try:
        tracker = evaluate_task(task_id, experiment, save_report=False)
    except Exception as e:
        if not _ended_in_tests(e):
            raise
        # The task's own tests raise exceptions in worlds that they do not expect.
        tests = Task.load(task_id).ground_truth.test_data
        return [[test["requirement"], False, test["label"]] for test in tests]
    return [[t["requirement"], True, t["label"]] for t in tracker.passes] + [
        [t["requirement"], False, t["label"]] for t in tracker.failures
    ]


def _ended_in_tests(error: Exception) -> bool:
    """Return whether the exception comes from a task's tests, not from recording verdicts."""
    frames = traceback.extract_tb(error.__traceback__)
    in_tests = any(Path(frame.filename).name == "evaluation.py" for frame in frames)
    return in_tests and not any(frame.name == "__exit__" for frame in frames)
