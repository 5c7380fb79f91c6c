"""Who meets whom, and why: people, scenarios and encounters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgyms.sotopia.games import Game


class Relationship(IntEnum):
    """What two people are to each other; it decides what they know of each other."""

    STRANGER = 0
    KNOW_BY_NAME = 1
    ACQUAINTANCE = 2
    FRIEND = 3
    ROMANTIC = 4
    FAMILY = 5


@dataclass(frozen=True, slots=True)
class Person:
    """A character, by the fields of SOTOPIA's `AgentProfile` that its texts show."""

    person_id: str
    first_name: str
    last_name: str
    age: int
    occupation: str
    gender: str
    gender_pronoun: str
    public_info: str
    personality_and_values: str
    secret: str

    @property
    def name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A situation with a goal for each seat, by the fields of SOTOPIA's `EnvironmentProfile`.

    Attributes:
        scenario_id: The benchmark's own.
        codename: A short name.
        source: What it was made from, such as `craigslist_bargains`.
        text: The situation; like the goals it may hold tags that only some viewers see.
        goals: Of seat 0 and seat 1, hidden from the other seat.
        relationship: Of the two.
    """

    scenario_id: str
    codename: str
    source: str
    text: str
    goals: tuple[str, str]
    relationship: Relationship


@dataclass(frozen=True, slots=True)
class Encounter:
    """One task: a scenario, who sits where, and which seat is the learner's.

    Attributes:
        task_id: `<combination>/<seat>`.
        scenario: The situation.
        people: Seat 0 and seat 1.
        seat: The learner's.
        hard: It belongs to SOTOPIA-hard.
        game: Rules by which a program can tell who reached what; None for open situations.
    """

    task_id: str
    scenario: Scenario
    people: tuple[Person, Person]
    seat: int
    hard: bool = False
    game: Game | None = None
