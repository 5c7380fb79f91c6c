"""Executors: confined processes that run the code of an episode.

Code can act on the world by API calls alone, whatever it does to its own process: the world, its
records and its tests are in other processes.
"""

from __future__ import annotations

import atexit
import functools
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentgyms.core.errors import BadOption, WorkerLost
from agentgyms.envs.appworld.sandbox import install
from agentgyms.envs.appworld.sandbox.forkserver import ForkServer, role_command, role_environment
from agentgyms.envs.appworld.sandbox.worker import Worker, WorkerDied
from agentgyms.envs.appworld.world import ApiResponse, Brief

Kind = Literal["mini", "appworld"]
Call = Callable[[str, str, dict[str, Any]], ApiResponse]

SEED: Final = 100
"""The seed of `random`, as in the engine."""

GRACE_S: Final = 5.0
"""Seconds between the time limit, which raises an exception in the code, and a kill."""

MEMORY_MB: Final = 512
"""Most memory of code, in MB."""

MAX_SENT: Final = 8 << 20
"""Most bytes of arguments that the code of an episode may send."""

_BEGIN_LIMIT_S: Final = 30.0
_FORKS: Final = 1000
_servers: Final[dict[str, ForkServer]] = {}
_servers_lock = threading.Lock()
_MAX_LINE: Final = 500
_MAX_CHARACTERS: Final = 2**53
_MAX_LEVELS: Final = 100
_TOO_DEEP: Final = f"Arguments must not be nested in more than {_MAX_LEVELS} levels."
_TOO_MANY_CALLS: Final = (
    "Number of requests exceeded the limit of {}. "
    "This potentially means that you have an infinite loop in your code."
)
_TOO_MUCH: Final = "The arguments of this episode's calls have more than {} bytes together."
_TOO_LATE: Final = "The time of this code is up."


class ConfinementWarning(RuntimeWarning):
    """This system lacks a part of the confinement of agents' code."""


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of a turn's code.

    `output` is that of AppWorld's `execute`, but addresses of objects are masked, and the middle
    of more than 65,536 characters is cut out.
    """

    output: str
    num_characters: int  # of the output before the cut
    error_kind: str  # type of the exception that ended the code, "" if none did
    error: str  # type and message in one line of at most 500 characters
    status: int | None  # HTTP status in the message
    timed_out: bool


class Executor:
    """The process of one episode, which is stopped between turns; not thread-safe."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        worker.for_agents = True
        self._turn = 0
        self._sent = 0
        self.confinement: dict[str, Any] = {}
        """The confinement in force, after `begin`."""

    @property
    def pid(self) -> int:
        """Process id."""
        return self._worker.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._worker.alive

    def begin(self, brief: Brief) -> None:
        """Set up a task's APIs and time for the code."""
        begin = {
            "apis": {app: list(apis) for app, apis in brief.apis.items()},
            "now": brief.now,
            "seed": SEED,
            "chance": brief.task_id,
            "memory_mb": MEMORY_MB,
        }
        self.confinement = dict(self._worker.request({"begin": begin}, _BEGIN_LIMIT_S)["begun"])
        _warn_of_missing_confinement(tuple(self.confinement.get("missing", ())))

    def run(self, code: str, call: Call, *, timeout_s: float, max_calls: int) -> Execution:
        """Run code after the code of the turns before.

        `timeout_s` includes the time of the code's API calls; a call that is running `GRACE_S`
        after it is the last one. Calls beyond `max_calls` raise an exception in the code.

        Raises:
            WorkerDied: The process ended, or was killed `GRACE_S` after the time limit or because
                it violated the protocol.
            WorkerLost: Raised by `call`; the executor cannot be used afterwards.
        """
        if self._worker.alive and not self._worker.idle:
            raise self._worker.protocol_error("sent a message between two turns")
        self._worker.resume()
        self._turn += 1
        limit_s = timeout_s + GRACE_S
        deadline = time.monotonic() + limit_s
        execute = {"code": code, "timeout_s": timeout_s, "turn": self._turn}
        self._worker.send({"execute": execute}, limit_s)
        calls, late = 0, False
        while True:
            message = self._worker.receive(deadline - time.monotonic())
            if "done" in message:
                self._worker.pause()  # code that only claims to be done must not run on
                return self._execution(message)
            calls += 1
            refusal = self._refusal(calls, max_calls, late)
            response = self._respond(message, calls, call, refusal)
            if not late and time.monotonic() >= deadline:
                # The world was slow, which is not the code's fault: it may end, but call no more.
                late, deadline = True, time.monotonic() + GRACE_S
            self._worker.send({**response, "at": [self._turn, calls]}, deadline - time.monotonic())

    def _refusal(self, calls: int, max_calls: int, late: bool) -> str:
        """Return why a call is not made, "" if it is."""
        self._sent += self._worker.last_bytes
        if calls > max_calls:
            return _TOO_MANY_CALLS.format(max_calls)
        if self._sent > MAX_SENT:
            return _TOO_MUCH.format(MAX_SENT)
        return _TOO_LATE if late else ""

    def _respond(
        self, message: Mapping[str, Any], calls: int, call: Call, refusal: str
    ) -> dict[str, Any]:
        match message:
            case {"call": [str(app), str(api), dict(arguments)], "at": [turn, number]} if (
                turn == self._turn and number == calls
            ):
                pass
            case _:
                raise self._worker.protocol_error("sent something else than a call of this turn")
        if refusal:
            return {"raise": ["Exception", refusal]}
        if _is_deep(arguments):  # recursive functions would fail on them, on the trusted side
            return {"raise": ["ValueError", _TOO_DEEP]}
        try:
            response = call(app, api, arguments)
        except BaseException:
            self.close()  # it would wait for a response for ever
            raise
        if response.error:
            return {"raise": [response.kind, response.error]}
        return {"value": response.value}

    def _execution(self, message: Mapping[str, Any]) -> Execution:
        match message:
            case {
                "done": {
                    "output": str(output),
                    "num_characters": int(num_characters),
                    "error_kind": str(error_kind),
                    "error": str(error),
                    "status": (int() | None) as status,
                    "timed_out": bool(timed_out),
                },
                "turn": turn,
            } if turn == self._turn:
                return Execution(
                    output=_encodable(output),
                    num_characters=min(max(num_characters, len(output)), _MAX_CHARACTERS),
                    error_kind=_encodable(error_kind)[:_MAX_LINE],
                    error=_encodable(" ".join(error.split()))[:_MAX_LINE],
                    status=status,
                    timed_out=timed_out,
                )
        raise self._worker.protocol_error("sent something else than the result of this turn")

    def close(self) -> None:
        """End the process; a second call does nothing."""
        self._worker.close()


def _is_deep(value: Any) -> bool:
    """Return whether lists and objects are nested in more than `_MAX_LEVELS` levels."""
    level = [value]
    for _ in range(_MAX_LEVELS + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _encodable(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode()


def executor(kind: Kind) -> Executor:
    """Return a new executor; all but the first start in milliseconds."""
    return Executor(fork_server(kind).fork())


def fork_server(kind: Kind) -> ForkServer:
    """Return this process's fork server of a kind of executor; it ends with this process."""
    if kind not in ("mini", "appworld"):
        raise BadOption(f"kind: expected 'mini' or 'appworld', got {kind!r}")
    with _servers_lock:
        if kind not in _servers:
            # With the mini engine, code can import the standard library alone.
            installed = kind == "appworld"
            python = install.python() if installed else sys.executable
            command = role_command(python, "executor", {"kind": kind}, site_packages=installed)
            server = ForkServer(
                command, environment=role_environment(), forks=_FORKS, kind="appworld-executor"
            )
            atexit.register(server.close)
            _servers[kind] = server
        return _servers[kind]


def confinement(kind: Kind = "mini") -> dict[str, Any]:
    """Return the confinement of an executor on this system."""
    probe = executor(kind)
    try:
        probe.begin(Brief("probe_1", "", {}, "2023-05-18T12:00:00", 0, {}))
        return probe.confinement
    finally:
        probe.close()


@functools.cache
def _warn_of_missing_confinement(missing: tuple[str, ...]) -> None:
    if missing:
        warnings.warn(
            f"code of agents runs without {', '.join(missing)} on this system: run agents that"
            " you do not trust in a container",
            ConfinementWarning,
            stacklevel=4,
        )


__all__ = [
    "Call", "ConfinementWarning", "Execution", "Executor", "Kind", "WorkerDied", "WorkerLost",
    "confinement", "executor", "fork_server",
]  # fmt: skip
