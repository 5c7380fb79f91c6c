"""The building blocks of scenarios: random choices, required changes and plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from agentgyms.core.randomness import Chance
from agentgyms.envs.appworld.mini.record_builder import Scene
from agentgyms.envs.appworld.mini.records import Balance, Payment, Record, TopUp
from agentgyms.envs.appworld.mini.tracker import (
    Check,
    Outcome,
    answer_is,
    no_op_fail,
    only_changed,
    others_unchanged,
)

T = TypeVar("T")

TASKS_PER_SCENARIO: Final = 3

_ITEMS_OF_SPLIT: Final = {
    "train": slice(0, None, 2),
    "dev": slice(1, None, 4),
    "test_normal": slice(3, None, 4),
    "test_challenge": slice(None),
}
"""The items of a list for each split. test_challenge has its own templates, so it uses all."""

_MIN_DIVIDED: Final = 12
"""Shorter lists are not divided, because each split needs at least three items."""

_UNORDERED: Final = frozenset({"song_ids", "tags"})
_IGNORED_FIELDS: Final = frozenset({"updated_at"})
"""Fields that change even if a record is rewritten without a change."""


class Draw:
    """The random choices of one task."""

    def __init__(self, scenario: str, number: int, split: str, scene: Scene) -> None:
        """Prepare the choices of task 1, 2 or 3 of a scenario, which share the wording alone."""
        self.scene = scene
        self.chance = scene.chance
        self._scenario = scenario
        self._number = number
        self._items_of_split = _ITEMS_OF_SPLIT[split]

    def choose(self, what: str, items: Sequence[T]) -> T:
        """Return one of at least 3 items; the scenario's other tasks get other items.

        If there are 12 items or more, each of train, dev and test_normal has its own items, so that
        code learned on one split does not solve tasks of another.
        """
        if len(items) >= _MIN_DIVIDED:
            items = items[self._items_of_split]
        drawn = Chance(self._scenario, what).sample(items, TASKS_PER_SCENARIO)
        return drawn[self._number - 1]

    def wording(self, *wordings: str) -> str:
        """Return one of the wordings, the same for all tasks of the scenario."""
        return Chance(self._scenario, "wording").pick(wordings)


@dataclass(frozen=True, slots=True)
class Change:
    """The required changes of the records of a kind; there must be no others."""

    requirement: str
    kind: type[Record]
    added: Sequence[Mapping[str, Any]] = ()
    updated: Mapping[int, Mapping[str, Any]] | None = None
    removed: Collection[int] = ()  # ids

    def holds(self, outcome: Outcome) -> bool:
        """Return whether the changes of a world are exactly these."""
        table = outcome.before.table(self.kind.TABLE)
        changes = outcome.changed_records(self.kind)
        updated = {
            each.key: _values(each)
            for each in changes.updated
            if _values(each) != _values(table[each.key])
        }
        expected = {
            key: {**_values(table[key]), **_comparable(values)}
            for key, values in (self.updated or {}).items()
        }
        return (
            {each.key for each in changes.removed} == set(self.removed)
            and updated == expected
            and self._added(changes.added)
        )

    def _added(self, records: Sequence[Record]) -> bool:
        unmatched = list(map(_values, records))
        for values in map(_comparable, self.added):
            match = next((each for each in unmatched if values.items() <= each.items()), None)
            if match is None:
                return False
            unmatched.remove(match)
        return not unmatched


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a task: its instruction, solution (one block per turn) and requirements."""

    instruction: str
    solution: tuple[str, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """The template of a scenario; `plan` adds a task's records to its scene."""

    name: str
    difficulty: int
    plan: Callable[[Draw], Plan]


def template(difficulty: int) -> Callable[[Callable[[Draw], Plan]], Template]:
    """Return a decorator that makes a function a template of this difficulty, with its name."""

    def make(plan: Callable[[Draw], Plan]) -> Template:
        return Template(plan.__name__.replace("_", ""), difficulty, plan)

    return make


def plan(instruction: str, solution: Sequence[str], *changes: Change, answer: Any = None) -> Plan:
    """Return a plan that checks the answer (None if there is none), the changes and all else."""
    checks = [answer_is(answer)]
    if changes:
        checks += [no_op_fail(change.requirement, change.holds) for change in changes]
        kinds = [change.kind for change in changes]
        # Balances follow from payments and top-ups.
        moved = [Balance] if {Payment, TopUp} & set(kinds) else []
        checks.append(others_unchanged(*kinds, *moved))
    else:
        checks.append(only_changed())
    return Plan(instruction, tuple(solution), tuple(checks))


def quoted(text: str) -> str:
    """Return text as a string literal in double quotes."""
    return json.dumps(text)


def dollars(cents: int) -> str:
    """Return an amount in the form of instructions and notes."""
    return f"{cents / 100:.2f}"


def _values(record: Record) -> dict[str, Any]:
    return _comparable(
        {name: getattr(record, name) for name in record.FIELDS if name not in _IGNORED_FIELDS}
    )


def _comparable(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: frozenset(value) if name in _UNORDERED else value for name, value in values.items()
    }
