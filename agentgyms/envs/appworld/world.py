"""Protocols and values of worlds: apps behind APIs, and the tests of a task.

A world is on the trusted side. The agent's code runs in another process, which has nothing but its
own variables: it acts on a world through API calls alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Label = Literal["no_op_fail", "no_op_pass"]
"""Whether a requirement fails or passes without any action."""


@dataclass(frozen=True, slots=True)
class Brief:
    """The description of a task."""

    task_id: str  # `<scenario>_<n>`, n from 1 to 3
    instruction: str
    supervisor: Mapping[str, str]  # first_name, last_name, email, phone_number
    now: str  # the world's frozen time in ISO 8601, without a time zone
    difficulty: int  # 1, 2 or 3; 0 if it is not known
    apis: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """The response of an API call: a value, or an exception to raise in the calling code."""

    value: Any = None
    error: str = ""  # the exception's message; "" if the call succeeded
    kind: str = "Exception"  # a built-in exception
    status: int = 200  # HTTP; 0 if no request was made


@dataclass(frozen=True, slots=True)
class Verdict:
    """One requirement of a task, and whether it is met."""

    requirement: str
    passed: bool
    label: Label


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts of a task's tests, like AppWorld's `TestTracker`."""

    verdicts: tuple[Verdict, ...]

    @property
    def success(self) -> bool:
        """Whether all requirements are met."""
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def score(self) -> float:
        """The share of the requirements that are met; above 0 without any action."""
        return _share(self.verdicts)

    @property
    def score_over_no_op(self) -> float:
        """The share that is met of the requirements that fail without any action."""
        return _share(self._earned)

    @property
    def atoms(self) -> dict[str, bool | float]:
        """Whether each requirement is met that fails without any action, in their words' order."""
        # AppWorld lists those that are met first: a test's place in its list changes.
        listed = sorted(self._earned, key=lambda verdict: verdict.requirement)
        return {f"test {i}": verdict.passed for i, verdict in enumerate(listed, 1)}

    @property
    def _earned(self) -> list[Verdict]:
        return [v for v in self.verdicts if v.label == "no_op_fail"]


def _share(verdicts: Sequence[Verdict]) -> float:
    return sum(v.passed for v in verdicts) / len(verdicts) if verdicts else 0.0


class World(Protocol):
    """The apps of one task, with the records after the calls so far."""

    @property
    def brief(self) -> Brief:
        """The task."""

    @property
    def alive(self) -> bool:
        """Whether the world can be called: False once its process died."""

    @property
    def completed(self) -> bool:
        """Whether `supervisor.complete_task` was called."""

    def call(self, app: str, api: str, arguments: Mapping[str, Any]) -> ApiResponse:
        """Return an API's response; unknown apps, APIs and arguments have an error as response.

        This and the methods below raise `WorkerLost` if a process that they need died.
        """

    def digest(self) -> str:
        """Return a digest of the apps' records: equal records have equal digests, others do not."""

    def report(self) -> Report:
        """Run the tests on the current records, and return their verdicts."""

    def close(self) -> None:
        """Release the world's resources; a second call does nothing."""


class Tasks(Protocol):
    """A source of tasks, which opens their worlds."""

    version: str
    """Version of the tasks, which recordings contain."""

    def families(self, split: str) -> Mapping[str, int]:
        """Return the difficulty (0: unknown) of each task of a split, in the benchmark's order."""

    def open(self, task_id: str) -> World:
        """Return a new world of a task, in its initial state."""

    def solution(self, task_id: str) -> Sequence[str] | None:
        """Return the code blocks of the reference solution, one per turn; None if it has none."""
