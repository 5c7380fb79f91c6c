"""A corridor in which things go wrong on command, and what the server tests share."""

from __future__ import annotations

import errno
import threading
import time
from importlib import import_module
from typing import Any, Final

import gymnasium as gym
import pytest

from agentgyms import registration
from agentgyms.core.deadlines import check_waited_for
from agentgyms.core.env import Outcome
from agentgyms.core.errors import DataMissing, EnvUnavailable, WorkerLost
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.remote import Patience

CORRIDOR: Final = "agentgyms/Corridor-v0"
FAULTY: Final = "tests/Faulty-v0"
TOKEN: Final = "a-token"
HURRIED: Final = Patience(connect_s=2, read_s=10, attempts=2, pause_s=0.01, full_s=0, lost_s=0.5)


class FaultyEnv(CorridorEnv):
    """A corridor whose engine fails on the actions `crash`, `lose worker`, `lose engine`, `wait`.

    Args:
        broken: `making`, `resetting`, `warming` or `closing` fails; `slow making` waits for
            `go_on`; `endless resetting` goes on until it is given up; `no files` resets fail while
            `files_missing` is positive, and count it down.
        folder: A path on the server.
        length: Refused unless it is positive.
        **kwargs: As for every environment.
    """

    private_arguments = frozenset({"folder"})
    open_ones = 0
    files_missing = 0
    go_on = threading.Event()
    waiting = threading.Event()

    def __init__(
        self, *, broken: str = "", folder: str = "", length: int = 1, **kwargs: Any
    ) -> None:
        if broken == "making":
            raise DataMissing("the data are not here; run: agentgyms data fetch")
        if broken == "slow making":
            self.waiting.set()
            self.go_on.wait(10)
        if length < 1:
            raise ValueError(f"length must be positive, got {length}")
        super().__init__(**kwargs)
        self._broken, self._folder = broken, folder
        FaultyEnv.open_ones += 1

    def begin(self, task: Any, rng: Any) -> Outcome:
        if self._broken == "resetting":
            raise RuntimeError("secret path /srv/secret")
        while self._broken == "endless resetting":
            self.waiting.set()
            check_waited_for()
            time.sleep(0.01)
        if self._broken == "no files" and FaultyEnv.files_missing:
            FaultyEnv.files_missing -= 1
            try:
                raise OSError(errno.EMFILE, "Too many open files")
            except OSError as e:
                raise WorkerLost("the engine cannot be started") from e
        return super().begin(task, rng)

    def warm(self) -> None:
        if self._broken == "warming":
            raise RuntimeError("the engine does not start")

    def act(self, action: str) -> Outcome:
        if action == "crash":
            raise RuntimeError("secret path /srv/secret")
        if action == "lose worker":
            raise WorkerLost("the engine's process died")
        if action == "lose engine":
            raise EnvUnavailable("the engine does not answer")
        if action == "wait":
            self.waiting.set()
            self.go_on.wait(10)
        return super().act(action)

    def close(self) -> None:
        FaultyEnv.open_ones -= 1
        if self._broken == "closing":
            raise RuntimeError("it does not close")


gym.register(FAULTY, entry_point=FaultyEnv)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Api:
    """Calls an application in process and returns (status, JSON body)."""

    def __init__(self, app: Any, **headers: str) -> None:
        self.app, self.headers = app, headers
        self.response: Any = None

    def call(self, method: str, path: str, json: Any = None, **options: Any) -> tuple[int, Any]:
        options.setdefault("headers", self.headers)
        self.response = self.app.test_client().open(path, method=method, json=json, **options)
        return self.response.status_code, self.response.get_json(silent=True)

    def post(self, path: str, json: Any = None, **options: Any) -> tuple[int, Any]:
        return self.call("POST", path, json, **options)

    def get(self, path: str, **options: Any) -> tuple[int, Any]:
        return self.call("GET", path, **options)

    def open(self, **kwargs: Any) -> str:
        """Open a session and return its path."""
        status, reply = self.post("/v1/sessions", {"kwargs": kwargs})
        assert status == 201, reply
        return f"/v1/sessions/{reply['session_id']}"

    def begun(self, seed: int = 0, **kwargs: Any) -> str:
        """Open a session, reset it and return its path."""
        path = self.open(**kwargs)
        status, reply = self.post(f"{path}/reset", {"seed": seed})
        assert status == 200, reply
        return path

    def step(self, path: str, action: str, turn: int, **fields: Any) -> tuple[int, Any]:
        return self.post(f"{path}/step", {"action": action, "turn": turn, **fields})


def code(reply: tuple[int, Any]) -> tuple[int, str]:
    """Return status and error code of a reply, after checking the error's form."""
    status, body = reply
    error = body["error"]
    assert set(error) == {"code", "message", "retryable", "hint"}
    assert type(error["retryable"]) is bool
    assert error["message"]
    return status, error["code"]


def importable_environments(*, browser: bool = False, slow: str = "") -> list[Any]:
    """Return the registered ids whose environment can be imported here, as tests' parameters.

    One in a browser takes seconds for what the others do in none, so that it is among them only
    where that is asked for. With `slow` in its id it is tested with what takes long.
    """
    found: list[Any] = []
    for env_id, entry in registration.ENVIRONMENTS.items():
        in_browser = "Browser" in env_id
        try:
            import_module(entry.partition(":")[0])
        except ImportError:
            continue
        if browser or not in_browser:
            marks = [pytest.mark.browser] if in_browser else []
            marks += [pytest.mark.slow] if f"/{slow}-" in env_id else []
            found.append(pytest.param(env_id, marks=marks))
    return found
