"""The people of the generated world: names, accounts, relations and contacts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime

from .records import Records

NOW = datetime(2023, 5, 18, 12, 0, 0)
ACCOUNTS = (
    *("amazon", "phone", "file_system", "spotify", "venmo", "gmail"),
    *("splitwise", "simple_note", "todoist"),
)
NUM_PEOPLE = 9
HOUSEHOLD = 3

_FIRST = ("Alma", "Boris", "Carla", "Dario", "Edith", "Felix", "Greta", "Hugo", "Irene")
_LAST = (
    *("Brandt", "Castell", "Dormer", "Eckhart", "Fenwick", "Garrow", "Holm", "Ibsen", "Jarvis"),
)


@dataclass(frozen=True)
class Person:
    """Someone with an account in every app; `id` is the user id in each of them, from 1."""

    id: int
    first_name: str
    last_name: str
    email: str
    phone_number: str
    birthday: str
    sex: str

    @property
    def name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}"

    def password(self, account: str) -> str:
        """Return the password of an account."""
        draw = random.Random(f"password {self.id} {account}")
        return "".join(draw.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(10))


def make_people() -> list[Person]:
    """Return the people, in order of their ids."""
    return [_person(number) for number in range(NUM_PEOPLE)]


def _person(number: int) -> Person:
    draw = random.Random(f"person {number}")
    first, last = _FIRST[number], _LAST[number]
    return Person(
        id=number + 1,
        first_name=first,
        last_name=last,
        email=f"{first.lower()}.{last.lower()}@example.com",
        phone_number=f"555{number + 1:02d}{draw.randrange(10**5):05d}",
        birthday=f"{draw.randint(1960, 2001)}-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}",
        sex="female" if number % 2 == 0 else "male",
    )


def relations(person: Person) -> dict[int, list[str]]:
    """Return the ids of the people that someone knows, with what they are to each other.

    Those of a household are room-mates, every third person works with the others of the three,
    and everybody has friends. The relation is the same from both sides.
    """
    known: dict[int, list[str]] = {}
    for other in range(1, NUM_PEOPLE + 1):
        names = _names(*sorted((person.id, other))) if other != person.id else []
        if names:
            known[other] = names
    return known


def _names(low: int, high: int) -> list[str]:
    names = []
    if (low - 1) // HOUSEHOLD == (high - 1) // HOUSEHOLD:
        names.append("roommate")
    if low % HOUSEHOLD == high % HOUSEHOLD:
        names.append("coworker")
    if random.Random(f"friends {low} {high}").random() < 0.45:
        names.append("friend")
    return names


def add_people(records: Records, people: list[Person]) -> None:
    """Plan the accounts and the contacts of all people."""
    for person in people:
        records.add(
            "admin.MainUser",
            first_name=person.first_name,
            last_name=person.last_name,
            email=person.email,
            phone_number=person.phone_number,
            birthday=person.birthday,
            sex=person.sex,
        )
        for account in ACCOUNTS:
            records.add(f"{account}.User", **_account(person, account))
    for person in people:
        for other_id, names in relations(person).items():
            _add_contact(records, person, people[other_id - 1], names)


def _account(person: Person, account: str) -> dict[str, object]:
    draw = random.Random(f"account {person.id} {account}")
    created_at = datetime(2021, draw.randint(1, 12), draw.randint(1, 28), draw.randint(0, 23))
    row: dict[str, object] = {
        "first_name": person.first_name,
        "last_name": person.last_name,
        "password": person.password(account),
        "created_at": created_at,
        "last_logged_in": datetime(2023, 5, draw.randint(1, 17), draw.randint(0, 23)),
    }
    if account == "phone":
        row["phone_number"] = person.phone_number
    else:
        row["email"] = person.email
    if account not in ("phone", "gmail"):
        row["verified"] = True
    if account == "venmo":
        row["venmo_balance"] = draw.randint(90000, 250000) / 100
    return row


def _add_contact(records: Records, owner: Person, other: Person, names: list[str]) -> None:
    records.add(
        "phone.Contact",
        user_id=owner.id,
        first_name=other.first_name,
        last_name=other.last_name,
        email=other.email,
        phone_number=other.phone_number,
        relationships=names,
        birthday=other.birthday,
        created_at=datetime(2022, 1, 1, 9),
    )
