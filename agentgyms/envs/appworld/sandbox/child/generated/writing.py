"""Notes, to-do lists and alarms of the generated world."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from .people import NOW, Person, relations
from .records import Records

TAGS = ("recipes", "books", "travel", "ideas", "garden")
PLACES = ("the Blue Lantern", "Casa Verde", "the Old Mill", "Noodle Harbour")
PROJECT_NAMES = ("Household", "Office Move", "Spring Garden", "Road Trip")
ERRANDS = (
    *("buy stamps", "call the plumber", "clean the windows", "fix the bicycle", "water the herbs"),
    *("return the library books", "sort the photos", "order new curtains", "book a dentist visit"),
    *("pack the boxes", "label the cables", "renew the passport", "sharpen the knives"),
    *("plan the route", "check the tyres", "wash the car", "write the postcards", "mow the lawn"),
)
ALARMS = ("Wake up", "Gym", "Medicine", "Walk the dog", "Language class", "Lunch", "Call home")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SUBJECTS = (
    *("lentil soup", "sourdough", "paper boats", "night trains", "tomato seeds", "old maps"),
    *("mountain huts", "short stories", "balcony herbs", "island ferries", "apple cake"),
    *("detective novels", "board games", "rain barrels", "city walks", "pickled beets"),
)
_KINDS = ("Notes on", "List for", "Thoughts about")


def add_writing(records: Records, person: Person, people: list[Person]) -> None:
    """Plan a person's notes, to-do projects and alarms."""
    draw = random.Random(f"writing {person.id}")
    titles = [f"{kind} {subject}" for kind in _KINDS for subject in _SUBJECTS]
    for title in draw.sample(titles, draw.randint(12, 18)):
        tags = draw.sample(TAGS, draw.randint(1, 2))
        _add_note(records, person, draw, title, f"- start with {title.split()[-1]}", tags)
    places = draw.sample(PLACES, 2)
    for place in places:
        _add_note(records, person, draw, f"Dinner at {place}", shares(draw, person, people), [])
    _add_note(records, person, draw, "Money I owe", shares(draw, person, people), ["money"])
    _add_note(records, person, draw, "Money owed to me", shares(draw, person, people), ["money"])
    for title in ("Saturday errands", "Sunday errands"):
        lines = [f"- {errand}" for errand in draw.sample(ERRANDS, draw.randint(3, 6))]
        _add_note(records, person, draw, title, "\n".join(lines), ["errands"])
    _add_projects(records, person, draw)
    _add_alarms(records, person, draw)


def shares(draw: random.Random, person: Person, people: list[Person]) -> str:
    """Return lines `First Last: $12.50`, with some of the people that someone knows."""
    known = [people[other - 1] for other in relations(person)]
    chosen = draw.sample(known, min(len(known), draw.randint(3, 4)))
    return "\n".join(f"{one.name}: ${draw.randint(500, 6000) / 100:.2f}" for one in chosen)


def read_shares(content: str) -> dict[str, float]:
    """Return names and amounts in dollars of a note that `shares` wrote."""
    lines = (line.split(": $") for line in content.splitlines())
    return {name: float(amount) for name, amount in lines}


def _add_note(
    records: Records, person: Person, draw: random.Random, title: str, text: str, tags: list[str]
) -> None:
    when = NOW - timedelta(days=draw.randint(2, 400), minutes=draw.randint(0, 600))
    records.add(
        "simple_note.Note",
        user_id=person.id,
        title=title,
        content=text,
        tags=tags,
        created_at=when,
        updated_at=when,
        pinned=False,
    )


def _add_projects(records: Records, person: Person, draw: random.Random) -> None:
    for name in ("Inbox", *PROJECT_NAMES):
        project = records.add(
            "todoist.Project",
            user_id=person.id,
            name=name,
            is_inbox=name == "Inbox",
            created_at=datetime(2022, 3, 1, 8),
        )
        records.add(
            "todoist.ProjectCollaboratorLink",
            project_id=project["id"],
            user_id=person.id,
            created_at=datetime(2022, 3, 1, 8),
        )
        section = records.add(
            "todoist.Section",
            project_id=project["id"],
            name="Later",
            order_index=0,
            created_at=datetime(2022, 3, 1, 8),
        )
        titles = draw.sample(ERRANDS, draw.randint(5, 7))
        priorities = ["high", "high", "low", "medium"]
        priorities += draw.choices(priorities, k=len(titles) - len(priorities))
        for index, (title, priority) in enumerate(zip(titles, priorities, strict=True)):
            records.add(
                "todoist.Task",
                project_id=project["id"],
                section_id=section["id"] if index % 2 else None,
                user_id=person.id,
                title=title,
                priority=priority,
                is_completed=index % 4 == 3,
                order_index=index // 2,
                created_at=datetime(2023, 4, draw.randint(1, 28), 10),
            )


def _add_alarms(records: Records, person: Person, draw: random.Random) -> None:
    for label in ALARMS:
        records.add(
            "phone.Alarm",
            user_id=person.id,
            time=f"{draw.randint(5, 21):02d}:{draw.randrange(0, 60, 5):02d}",
            repeat_days=sorted(draw.sample(DAYS, draw.randint(1, 4)), key=DAYS.index),
            label=label,
            enabled=True,
            created_at=datetime(2023, 1, 10, 9),
        )
