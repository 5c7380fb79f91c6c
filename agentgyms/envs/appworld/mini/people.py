"""The people of a task: the supervisor, the contacts, and strangers with similar names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.envs.appworld.mini import vocabulary

FAMILY: Final = ("mother", "father", "sister", "brother")
CIRCLES: Final = ("friend", "roommate", "coworker", "neighbor")
"""Relations that several contacts have."""

SPLITS: Final = ("train", "dev", "test_normal", "test_challenge")
_FRIENDS_PER_CIRCLE: Final = (2, 3)
_NUM_STRANGERS: Final = 6


@dataclass(frozen=True, slots=True)
class Person:
    """One person."""

    first_name: str
    last_name: str
    email: str  # unique; the user name of all accounts
    phone_number: str  # ten digits
    birthday: str  # ISO 8601
    relation: str  # one of `FAMILY` or `CIRCLES`, "" for a stranger

    @property
    def name(self) -> str:
        """First and last name, unique among the people of a task."""
        return f"{self.first_name} {self.last_name}"


@dataclass(frozen=True, slots=True)
class Cast:
    """The people of one task; contacts are the family first, then the circles.

    Each stranger has a contact's first name; the first one also has the supervisor's last name.
    """

    supervisor: Person
    contacts: tuple[Person, ...]
    strangers: tuple[Person, ...]

    @property
    def others(self) -> tuple[Person, ...]:
        """Everyone but the supervisor."""
        return self.contacts + self.strangers

    def related(self, relation: str) -> list[Person]:
        """Return the contacts of a relation."""
        return [person for person in self.contacts if person.relation == relation]

    @property
    def namesakes(self) -> dict[str, Person]:
        """The stranger with a contact's first name, by that name."""
        return {person.first_name: person for person in self.strangers}


def draw_cast(chance: Chance, split: str) -> Cast:
    """Return the people of a task; the last names differ between splits."""
    last_names = chance.sample(
        vocabulary.LAST_NAMES[SPLITS.index(split) :: len(SPLITS)], len(vocabulary.LAST_NAMES)
    )
    relations = [*chance.sample(FAMILY, chance.between(2, 3))]
    for circle in CIRCLES:
        relations += [circle] * chance.between(*_FRIENDS_PER_CIRCLE)
    first_names = chance.sample(vocabulary.FIRST_NAMES, len(relations) + 1)
    family_name = last_names.pop()
    supervisor = _person(chance, first_names.pop(), family_name, "")
    contacts = tuple(
        _person(chance, first, family_name if relation in FAMILY else last_names.pop(), relation)
        for first, relation in zip(first_names, relations, strict=True)
    )
    known = [person for person in contacts if person.relation not in FAMILY]
    strangers = tuple(
        _person(chance, person.first_name, family_name if i == 0 else last_names.pop(), "")
        for i, person in enumerate(chance.sample(known, _NUM_STRANGERS))
    )
    return Cast(supervisor, contacts, strangers)


def draw_stranger(chance: Chance, cast: Cast) -> Person:
    """Return a new person with a first name that nobody in the cast has."""
    taken = {person.first_name for person in (cast.supervisor, *cast.contacts)}
    first = chance.pick([name for name in vocabulary.FIRST_NAMES if name not in taken])
    return _person(chance, first, chance.pick([person.last_name for person in cast.strangers]), "")


def _person(chance: Chance, first: str, last: str, relation: str) -> Person:
    day = f"{chance.between(1955, 2002)}-{chance.between(1, 12):02}-{chance.between(1, 28):02}"
    phone = f"{chance.between(201, 989)}555{chance.between(100, 9999):04}"
    email = f"{first.lower()}.{last.lower()}@mail.example"
    return Person(first, last, email, phone, day, relation)
