"""Runs the code of an episode's turns on a world, and replaces lost processes."""

from __future__ import annotations

import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from agentgyms.core.errors import ReplayMismatch, WorkerLost
from agentgyms.envs.appworld.sandbox import executors
from agentgyms.envs.appworld.sandbox.forkserver import WorkerDied
from agentgyms.envs.appworld.world import ApiResponse, Brief, Report, Tasks, World

Engine = Literal["mini", "appworld"]

_ATTEMPTS: Final = 3
_EXTERNAL_SIGNALS: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that come from outside; any other end of an executor is the fault of its code."""

_DOCUMENTATION: Final = "api_docs"
_LOST: Final = (
    "Execution failed. Its process was lost: {why}. Nothing of this code was done; apps and"
    " variables are as they were before it."
)
_ENDED: Final = "Execution failed. The code ended its process: {why}. The episode is over."


class Limits(NamedTuple):
    """The limits of one turn's code: seconds, and API calls."""

    timeout_s: float
    max_calls: int


@dataclass(slots=True)
class Counts:
    """Counts of API calls: all, those with an error, those to the documentation."""

    api_calls: int = 0
    api_errors: int = 0
    doc_lookups: int = 0

    def count(self, app: str, response: ApiResponse) -> None:
        """Count one call."""
        self.api_calls += 1
        self.api_errors += bool(response.error)
        self.doc_lookups += app == _DOCUMENTATION

    def add(self, other: Counts) -> None:
        """Add the counts of a turn."""
        self.api_calls += other.api_calls
        self.api_errors += other.api_errors
        self.doc_lookups += other.doc_lookups


class TurnResult(NamedTuple):
    """The result of one turn's code."""

    output: str
    error: str = ""  # one line, "" if the code did not fail
    ended: bool = False  # the code ended its process, and with it the episode
    num_characters: int = 0  # of the output before its middle was cut out


class _Resources:
    world: World | None = None
    executor: executors.Executor | None = None

    def release(self) -> None:
        executor, self.executor = self.executor, None
        world, self.world = self.world, None
        try:
            if executor is not None:
                executor.close()
        finally:
            if world is not None:
                world.close()


class CodeRunner:
    """Runs the code of one task's turns, and replaces lost processes.

    The executor starts with the first code. If the code itself ends its process (by a crash, an
    exit, or by running on after its time is up), the episode ends. A process lost for another
    reason is replaced: the earlier code runs again on a new world, which must end in the same
    digest.
    """

    def __init__(self, tasks: Tasks, task_id: str, engine: Engine, limits: Limits) -> None:
        self.task_id = task_id
        self._tasks, self._engine, self._limits = tasks, engine, limits
        self.executed: list[str] = []
        self.counts = Counts()
        self.digest, self.completed = "", False
        self._resources = _Resources()
        self._release = weakref.finalize(self, self._resources.release)

    def open(self) -> Brief:
        """Open a world, run the executed code again, and return its brief; or `ReplayMismatch`."""
        with _not_agents_fault():
            world = self._resources.world = self._tasks.open(self.task_id)
        for code in self.executed:
            self._execute(code, Counts())
        with _not_agents_fault():
            digest = world.digest()
        if self.digest and digest != self.digest:
            raise ReplayMismatch(
                f"running the code of {len(self.executed)} turns again on {self.task_id} led to "
                "other records than before: does it depend on the clock or on chance?"
            )
        self.digest, self.completed = digest, world.completed
        return world.brief

    def run(self, code: str) -> TurnResult:
        """Run the code of a turn; raise `WorkerLost` if a process cannot be replaced."""
        counts = Counts()
        try:
            if not self._alive:
                self._recover()  # a process lost between two turns costs no turn
            execution = self._execute(code, counts)
            self._update_state()
        except WorkerLost as e:
            return (
                self._end_episode(code, counts, e)
                if _is_agents_fault(e)
                else self._lose_turn(code, e)
            )
        self.counts.add(counts)
        self.executed.append(code)
        return TurnResult(
            execution.output, execution.error, num_characters=execution.num_characters
        )

    def report(self) -> Report:
        """Run the tests on the current world, and return their verdicts."""
        try:
            return self._world.report()
        except WorkerLost:
            self._recover()
            return self._world.report()

    def close(self) -> None:
        """Close the world and the executor; a second call does nothing."""
        self._release()

    @property
    def _alive(self) -> bool:
        executor = self._resources.executor
        return self._world.alive and (executor is None or executor.alive)

    @property
    def _world(self) -> World:
        assert self._resources.world is not None, "the episode is not open"
        return self._resources.world

    def _execute(self, code: str, counts: Counts) -> executors.Execution:
        world, limits = self._world, self._limits

        def call(app: str, api: str, arguments: dict[str, Any]) -> ApiResponse:
            with _not_agents_fault():
                response = world.call(app, api, arguments)
            counts.count(app, response)
            return response

        executor = self._resources.executor or self._start_executor()
        return executor.run(code, call, timeout_s=limits.timeout_s, max_calls=limits.max_calls)

    def _start_executor(self) -> executors.Executor:
        with _not_agents_fault():
            executor = self._resources.executor = executors.executor(self._engine)
            executor.begin(self._world.brief)
        return executor

    def _update_state(self) -> None:
        with _not_agents_fault():
            self.digest, self.completed = self._world.digest(), self._world.completed

    def _end_episode(self, code: str, counts: Counts, why: WorkerLost) -> TurnResult:
        """Record that the code ended its process; its changes of the world remain."""
        self.counts.add(counts)
        self.executed.append(code)
        with suppress(WorkerLost):  # `report` tries to open the world again
            self._update_state()
        reason = _loss_reason(why)
        return TurnResult(_ENDED.format(why=reason), f"WorkerDied: {reason}", ended=True)

    def _lose_turn(self, code: str, why: WorkerLost) -> TurnResult:
        """Restore the state before a turn whose processes were lost."""
        try:
            self._recover()
        except WorkerDied as e:
            if not _is_agents_fault(e):
                raise
            return self._end_episode(code, Counts(), e)
        reason = _loss_reason(why)
        return TurnResult(_LOST.format(why=reason), f"WorkerLost: {reason}")

    def _recover(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            self._resources.release()
            try:
                self.open()
                return
            except ReplayMismatch as e:
                raise WorkerLost(f"a process was lost, and cannot be replaced: {e}") from e
            except WorkerLost as e:
                if attempt == _ATTEMPTS or _is_agents_fault(e):
                    raise


@contextmanager
def _not_agents_fault() -> Iterator[None]:
    """Turn `WorkerDied` of a process without agent code into a plain `WorkerLost`."""
    try:
        yield
    except WorkerDied as e:
        raise WorkerLost(str(e)) from e


def _is_agents_fault(why: WorkerLost) -> bool:
    if not isinstance(why, WorkerDied):
        return False
    return why.timed_out or why.signal not in _EXTERNAL_SIGNALS


def _loss_reason(why: WorkerLost) -> str:
    """Return why a process was lost, in words that are the same in every run."""
    if not isinstance(why, WorkerDied):
        return "the process of the apps did not answer"
    if why.timed_out:
        return "it ran on after its time was up and it was interrupted"
    if why.signal is not None:
        with suppress(ValueError):
            return f"it died of {signal.Signals(why.signal).name}"
        return f"it died of signal {why.signal}"
    if why.exit_code is not None:
        return f"it exited with code {why.exit_code}"
    return "it broke the protocol"
