"""The requirements of a task: checks that compare the records before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from agentgyms.envs.appworld.mini.database import TABLES, Database
from agentgyms.envs.appworld.mini.records import Record, Task
from agentgyms.envs.appworld.world import Label, Report, Verdict

R = TypeVar("R", bound=Record)

NOT_GIVEN: Final = "<<NOT_GIVEN>>"
"""The answer of a task that was not completed."""


class Changes(NamedTuple, Generic[R]):
    """The added, updated and removed records of a kind."""

    added: list[R]
    updated: list[R]
    removed: list[R]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The records of a world before and after the agent's actions."""

    before: Database
    after: Database

    @property
    def status(self) -> str:
        """`active` before the task was completed, then `success` or `fail`."""
        return self.after.of(Task)[1].status

    @property
    def answer(self) -> Any:
        """The answer given; `NOT_GIVEN` before the task was completed."""
        answer = self.after.of(Task)[1].answer
        return json.loads(answer) if answer else NOT_GIVEN

    def changed_tables(self, ignore: Collection[str] = ()) -> set[str]:
        """Return the names of tables whose records differ; `supervisor.Task` never counts."""
        return {
            name
            for name in TABLES
            if name != Task.TABLE
            and name not in ignore
            and self.before.table(name) != self.after.table(name)
        }

    def changed_records(self, kind: type[R]) -> Changes[R]:
        """Return the changes of the records of a kind, each list sorted by id."""
        before, after = self.before.of(kind), self.after.of(kind)
        return Changes(
            [after[key] for key in after if key not in before],
            [after[key] for key in after if key in before and after[key] != before[key]],
            [before[key] for key in before if key not in after],
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement; it is not met if `holds` raises an exception.

    `label` is whether it fails or passes without any action.
    """

    requirement: str
    label: Label
    holds: Callable[[Outcome], bool]


def no_op_fail(requirement: str, holds: Callable[[Outcome], bool]) -> Check:
    """Return a check that fails without any action."""
    return Check(requirement, "no_op_fail", holds)


def no_op_pass(requirement: str, holds: Callable[[Outcome], bool]) -> Check:
    """Return a check that passes without any action."""
    return Check(requirement, "no_op_pass", holds)


def answer_is(expected: Any) -> Check:
    """Return the check that the task succeeded with this answer; lists may be in any order."""
    text = "without an answer" if expected is None else "with the right answer"
    return no_op_fail(
        f"The task is completed {text}.",
        lambda outcome: outcome.status == "success" and same_answer(outcome.answer, expected),
    )


def only_changed(*kinds: type[Record]) -> Check:
    """Return the check that exactly the tables of these kinds changed; no kinds: no table."""
    names = {kind.TABLE for kind in kinds}
    text = " and ".join(sorted(names))
    return Check(
        f"Of all tables {text} changed, no other." if names else "Nothing changed.",
        "no_op_fail" if names else "no_op_pass",
        lambda outcome: outcome.changed_tables() == names,
    )


def others_unchanged(*kinds: type[Record]) -> Check:
    """Return the check that no tables changed, except those of these kinds, which may."""
    names = {kind.TABLE for kind in kinds}
    return no_op_pass(
        f"Nothing changed outside of {' and '.join(sorted(names))}.",
        lambda outcome: outcome.changed_tables() <= names,
    )


def report(checks: Iterable[Check], outcome: Outcome) -> Report:
    """Return the verdicts of all checks."""
    return Report(
        tuple(Verdict(each.requirement, _holds(each, outcome), each.label) for each in checks)
    )


def _holds(check: Check, outcome: Outcome) -> bool:
    # A check may fail on unexpected records: then it is not met.
    try:
        return bool(check.holds(outcome))
    except (LookupError, TypeError, ValueError):
        return False


def same_answer(given: Any, expected: Any) -> bool:
    """Return whether two answers are equivalent.

    Numbers are compared as text with at most two decimals, so that `3`, `3.0` and "3.00" are equal;
    text in any case and without spaces or quotes around it; lists in any order.
    """
    return _answer_text(given) == _answer_text(expected)


def _answer_text(answer: Any) -> str:
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        return " | ".join(sorted(map(_answer_text, answer)))
    if answer is None:
        return "null"
    text = str(answer).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    try:
        number = round(float(text), 2)
    except ValueError:
        return text.strip().lower()
    return str(int(number)) if number.is_integer() else str(number)
