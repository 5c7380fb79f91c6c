"""Parses rows of SOTOPIA's database; errors name the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from agentgyms.core.errors import DataCorrupt
from agentgyms.envs.sotopia.official.files import PEOPLE, Row, Table
from agentgyms.envs.sotopia.profiles import Person, Relationship, Scenario

Pair = tuple[Person, Person]
Ages = tuple[int, int]
T = TypeVar("T")

_UNLIMITED: Final = (0, 1000)
_YEARS: Final = re.compile("[0-9]{1,4}")
_NO_LIMIT: Final = (None, "", "nan", "none", "[(18, 70), (18, 70)]")
"""Values that mean no age limit; the last is every scenario's default."""

_RELATIONSHIPS: Final = {
    "stranger": Relationship.STRANGER,
    "know_by_name": Relationship.KNOW_BY_NAME,
    "acquaintance": Relationship.ACQUAINTANCE,
    "friend": Relationship.FRIEND,
    "romantic_relationship": Relationship.ROMANTIC,
    "family_member": Relationship.FAMILY,
} | {str(int(relationship)): relationship for relationship in Relationship}


class RowParser:
    """Parses the fields of one row; every method raises `DataCorrupt` at an invalid one."""

    def __init__(self, row: Row, file: str) -> None:
        self.row = row
        self.key: str = row["pk"]
        self.where = f"{file}, {self.key}"

    def person(self) -> Person:
        """Return the person that the row describes."""
        return Person(
            person_id=self.key,
            first_name=self._text("first_name", needed=True),
            last_name=self._text("last_name", needed=True),
            age=self._age(),
            occupation=self._text("occupation"),
            gender=self._text("gender"),
            gender_pronoun=self._text("gender_pronoun"),
            public_info=self._text("public_info"),
            personality_and_values=self._text("personality_and_values"),
            secret=self._text("secret"),
        )

    def scenario(self) -> Scenario:
        """Return the scenario that the row describes."""
        return Scenario(
            scenario_id=self.key,
            codename=self._text("codename"),
            source=self._text("source") or "unknown",
            text=self._text("scenario", needed=True),
            goals=self._text_pair("agent_goals"),
            relationship=self.relationship(),
        )

    def relationship(self) -> Relationship:
        """Return the relationship, given as a number, a number in a string, or a name."""
        value = self.row.get("relationship")
        known = None
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            known = _RELATIONSHIPS.get(str(value).rpartition(".")[2])
        if known is None:
            raise self._error("relationship", "0 to 5 or a name such as 'friend'")
        return known

    def pair(self, people: Mapping[str, Person]) -> Pair:
        """Return the two people whose ids the row has."""
        if "agent_ids" in self.row:
            first, second = (
                self._found("agent_ids", key, people, PEOPLE)
                for key in self._text_pair("agent_ids")
            )
        else:
            first = self.named("agent_1_id", people, PEOPLE)
            second = self.named("agent_2_id", people, PEOPLE)
        if first.name == second.name:
            raise DataCorrupt(
                f"{self.where}: both people are called {first.name}, expected two names"
            )
        return first, second

    def named(self, field: str, known: Mapping[str, T], table: Table) -> T:
        """Return the row of another table that a field refers to."""
        return self._found(field, self._text(field, needed=True), known, table)

    def ages(self) -> tuple[Ages, Ages]:
        """Return the (minimum, maximum) age of each of the two people."""
        value = self.row.get("age_constraint")
        if value in _NO_LIMIT:
            return _UNLIMITED, _UNLIMITED
        try:
            first, second = ast.literal_eval(value)
            ages = tuple((low + 0, high + 0) for low, high in (first, second))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            raise self._error("age_constraint", "'[(18, 70), (18, 70)]' or the like") from None
        return ages[0], ages[1]

    def _found(self, field: str, key: str, known: Mapping[str, T], table: Table) -> T:
        if key not in known:
            raise DataCorrupt(
                f"{self.where}: {field} names the {table.noun} {key!r:.60}, which {table.file} "
                "does not have"
            )
        return known[key]

    def _text(self, field: str, *, needed: bool = False) -> str:
        value = self.row.get(field)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (needed and not value.strip()):
            raise self._error(field, "a text")
        return value

    def _text_pair(self, field: str) -> tuple[str, str]:
        value = self.row.get(field)
        if (
            not isinstance(value, list)
            or len(value) != 2
            or not all(isinstance(text, str) and text for text in value)
        ):
            raise self._error(field, "a list of two texts, one for each person")
        return value[0], value[1]

    def _age(self) -> int:
        value = self.row.get("age", 0)
        if isinstance(value, str) and _YEARS.fullmatch(value):
            value = int(value)
        if type(value) is not int or not _UNLIMITED[0] <= value <= _UNLIMITED[1]:
            raise self._error("age", "a number of years")
        return value

    def _error(self, field: str, expected: str) -> DataCorrupt:
        given: Any = self.row.get(field, "missing")
        return DataCorrupt(f"{self.where}: {field} is {given!r:.80}, expected {expected}")
