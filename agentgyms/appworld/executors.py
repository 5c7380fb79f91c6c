"""Executors: processes that run the code of an episode, and can do nothing else.

Whatever code does to its process, all that it can do to a world is call its APIs: the world, its
records and its tests live elsewhere.
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

from agentgyms.appworld.engine import install
from agentgyms.appworld.forkserver import ForkServer, role_command, role_environment
from agentgyms.appworld.worker import Worker, WorkerDied
from agentgyms.appworld.world import Brief, Reply
from agentgyms.errors import BadOption, WorkerLost

Kind = Literal["mini", "appworld"]
Call = Callable[[str, str, dict[str, Any]], Reply]

SEED: Final = 100
"""What `random` is seeded with, as in the engine."""

GRACE_S: Final = 5.0
"""How long code may go on after its time: code that swallows the exception is then killed."""

MEMORY_MB: Final = 512
"""Memory that code may use."""

_BEGIN_LIMIT_S: Final = 30.0
_FORKS: Final = 1000
_servers: Final[dict[str, ForkServer]] = {}
_servers_lock = threading.Lock()
_ONE_LINE: Final = 500
_MOST_CHARACTERS: Final = 2**53
_MOST_LEVELS: Final = 100
_TOO_DEEP: Final = f"Arguments must not be nested in more than {_MOST_LEVELS} levels."
_TOO_MANY_CALLS: Final = (
    "Number of requests exceeded the limit of {}. "
    "This potentially means that you have an infinite loop in your code."
)


class ConfinementWarning(RuntimeWarning):
    """This system lacks a part of what confines an agent's code."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of a turn's code.

    Attributes:
        output: What AppWorld's `execute` returns, but for addresses of objects, which are all the
            same, and for what lies beyond a million characters: the middle of it is left out.
        num_characters: How many it had.
        error_kind: Type of the exception that ended it, "" if none did.
        error: Type and message in one line of at most 500 characters, "" without an exception.
        status: HTTP status that the message names, None without.
        timed_out: Whether the time limit ended it.
    """

    output: str
    num_characters: int
    error_kind: str
    error: str
    status: int | None
    timed_out: bool


class Executor:
    """The process of one episode. One thread at a time."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._turn = 0
        self.confinement: dict[str, Any] = {}
        """What is in force, once `begin` was called."""

    @property
    def pid(self) -> int:
        """Process id."""
        return self._worker.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._worker.alive

    def begin(self, brief: Brief) -> None:
        """Tell what code finds: the APIs and the time of a task.

        Raises:
            WorkerDied: The process ended.
        """
        begin = {
            "apis": {app: list(apis) for app, apis in brief.apis.items()},
            "now": brief.now,
            "seed": SEED,
            "chance": brief.task_id,
            "memory_mb": MEMORY_MB,
        }
        self.confinement = dict(self._worker.ask({"begin": begin}, _BEGIN_LIMIT_S)["begun"])
        _warn_of_gaps(tuple(self.confinement.get("missing", ())))

    def run(self, code: str, call: Call, *, timeout_s: float, most_calls: int) -> Execution:
        """Run code after the code of the turns before.

        Args:
            code: What the agent wrote.
            call: Answers a call: app, API, arguments.
            timeout_s: Time that it may take, that of its calls included, in seconds, above 0.
            most_calls: Calls that it may make; further ones raise in it.

        Raises:
            WorkerDied: The process ended, or was ended `GRACE_S` after the time limit or because
                it broke the protocol.
            WorkerLost: `call` raised it; the executor cannot be used any more.
        """
        if self._worker.alive and not self._worker.silent:
            raise self._worker.broken("spoke out of turn")
        self._turn += 1
        self._worker.send({"execute": {"code": code, "timeout_s": timeout_s, "turn": self._turn}})
        limit_s = timeout_s + GRACE_S
        deadline = time.monotonic() + limit_s
        calls = 0
        while True:
            message = self._worker.receive(deadline - time.monotonic())
            if "done" in message:
                return self._execution(message)
            calls += 1
            begun = time.monotonic()
            reply = self._reply(message, calls, call, most_calls)
            # How long a world takes is not the code's fault: it is told of its time, not killed.
            deadline += time.monotonic() - begun
            self._worker.send({**reply, "at": [self._turn, calls]}, GRACE_S)

    def _reply(
        self, message: Mapping[str, Any], calls: int, call: Call, most_calls: int
    ) -> dict[str, Any]:
        match message:
            case {"call": [str(app), str(api), dict(arguments)], "at": [turn, number]} if (
                turn == self._turn and number == calls
            ):
                pass
            case _:
                raise self._worker.broken("said what is no call of this turn")
        if calls > most_calls:
            return {"raise": ["Exception", _TOO_MANY_CALLS.format(most_calls)]}
        if _is_deep(arguments):  # what recurses over them would fail here, on the trusted side
            return {"raise": ["ValueError", _TOO_DEEP]}
        try:
            reply = call(app, api, arguments)
        except BaseException:
            self.close()  # it waits for an answer that never comes
            raise
        if reply.error:
            return {"raise": [reply.kind, reply.error]}
        return {"value": reply.value}

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
                    num_characters=min(max(num_characters, len(output)), _MOST_CHARACTERS),
                    error_kind=_encodable(error_kind)[:_ONE_LINE],
                    error=_encodable(" ".join(error.split()))[:_ONE_LINE],
                    status=status,
                    timed_out=timed_out,
                )
        raise self._worker.broken("said what is no end of this turn")

    def close(self) -> None:
        """End the process; a second call does nothing."""
        self._worker.close()


def _is_deep(value: Any) -> bool:
    """Return whether lists and objects are nested in more than `_MOST_LEVELS` levels."""
    level = [value]
    for _ in range(_MOST_LEVELS + 1):
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
    """Replace halves of characters, which no encoding has a form for."""
    return text.encode("utf-8", "replace").decode()


def executor(kind: Kind) -> Executor:
    """Return a new executor; its process starts in milliseconds once the first one has.

    Args:
        kind: `mini` runs code in this interpreter's like, `appworld` in that of AppWorld.

    Raises:
        WorkerLost: Its process cannot be started.
        DependencyNotInstalled: AppWorld is not installed.
    """
    return Executor(fork_server(kind).fork())


def fork_server(kind: Kind) -> ForkServer:
    """Return this process's fork server of a kind of executor; it ends with this process.

    Raises:
        BadOption: There is no such kind.
        DependencyNotInstalled: AppWorld is not installed.
    """
    if kind not in ("mini", "appworld"):
        raise BadOption(f"kind: expected 'mini' or 'appworld', got {kind!r}")
    with _servers_lock:
        if kind not in _servers:
            # Code for the embedded world finds the standard library only.
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
    """Return what confines an executor on this system.

    Args:
        kind: Of executor.

    Raises:
        WorkerLost: Its process cannot be started.
    """
    probe = executor(kind)
    try:
        probe.begin(Brief("probe_1", "", {}, "2023-05-18T12:00:00", 0, {}))
        return probe.confinement
    finally:
        probe.close()


@functools.cache
def _warn_of_gaps(missing: tuple[str, ...]) -> None:
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
