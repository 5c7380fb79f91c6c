"""People, scenarios, encounters and the interface of games."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from agentgyms.envs.sotopia.dialogue import Act, Dialogue


class Relationship(IntEnum):
    """Relationship of two people; it decides how much of each other's profile they see."""

    STRANGER = 0
    KNOW_BY_NAME = 1
    ACQUAINTANCE = 2
    FRIEND = 3
    ROMANTIC = 4
    FAMILY = 5


@dataclass(frozen=True, slots=True)
class Person:
    """A character: the fields of SOTOPIA's `AgentProfile` that prompts show."""

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
    """A situation with a goal for each seat: fields of SOTOPIA's `EnvironmentProfile`.

    Each goal is hidden from the other seat. Text and goals may have mark-up that only some viewers
    see. `source` is the scenario's origin, such as `craigslist_bargains`.
    """

    scenario_id: str
    codename: str
    source: str
    text: str
    goals: tuple[str, str]
    relationship: Relationship


class Game(Protocol):
    """A game between two seats. Immutable: the dialogue alone decides its state."""

    def goal_score(self, dialogue: Dialogue, seat: int) -> int:
        """Return a seat's goal score, 0 to 10, if the dialogue ended here."""

    def subgoals(self, dialogue: Dialogue, seat: int) -> dict[str, bool]:
        """Return whether each of a seat's subgoals is reached."""

    def suggestions(self, dialogue: Dialogue, seat: int) -> tuple[str, ...]:
        """Return actions, as an agent writes them, that commit the seat to something now."""

    def no_effect_reason(self, dialogue: Dialogue, seat: int, act: Act) -> str:
        """Return why an act that looks like a commitment has no effect now, else ""."""


@dataclass(frozen=True, slots=True)
class Encounter:
    """One task, `<combination>/<seat>`: a scenario, its two people, and the learner's seat.

    `hard` is whether it belongs to SOTOPIA-hard; `game` scores a generated game, and is None for
    open situations.
    """

    task_id: str
    scenario: Scenario
    people: tuple[Person, Person]
    seat: int
    hard: bool = False
    game: Game | None = None
