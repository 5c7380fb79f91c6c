"""Files and mail of the generated world."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from .people import NOW, Person, relations
from .records import Records

BILLS = ("electricity", "water", "heating")
_MONTHS = [(2022, month) for month in range(1, 13)] + [(2023, month) for month in (1, 2)]
_STEMS = ("budget", "contacts", "inventory", "schedule", "results", "minutes", "draft", "sources")
_SUBJECTS = (
    *("Meeting on Thursday", "Photos from the lake", "Spare key", "Lecture notes", "New recipe"),
    *("Lost umbrella", "Train times", "Reading group", "Old bicycle", "Garden party"),
)


def add_files(records: Records, person: Person) -> None:
    """Plan a person's folders and files: documents of several types, and monthly bills."""
    draw = random.Random(f"files {person.id}")
    home = f"/home/{person.first_name.lower()}/"
    folders = ["/", "/home/", home, f"{home}documents/", f"{home}bills/"]
    folders += [f"{home}documents/{name}/" for name in ("club", "school")]
    for folder in folders:
        records.add(
            "file_system.Directory",
            user_id=person.id,
            path=folder,
            created_at=datetime(2021, 12, 1, 9),
            updated_at=datetime(2021, 12, 1, 9),
        )
    for folder in folders[3:]:
        if not folder.endswith("bills/"):
            for stem in draw.sample(_STEMS, draw.randint(4, 7)):
                ending = draw.choice(("csv", "txt", "md"))
                _add_file(records, person, f"{folder}{stem}.{ending}", stem, datetime(2022, 5, 2))
    for bill in BILLS:
        for year, month in _MONTHS:
            name = f"{home}bills/{bill}-{year}-{month:02d}.txt"
            amount = draw.randint(1500, 9500) / 100
            text = f"Bill: {bill}\nMonth: {year}-{month:02d}\nAmount: ${amount:.2f}"
            _add_file(records, person, name, text, datetime(year, month, 28, 9))


def _add_file(records: Records, person: Person, path: str, text: str, when: datetime) -> None:
    records.add(
        "file_system.File",
        user_id=person.id,
        path=path,
        content=text,
        created_at=when,
        updated_at=when,
    )


def add_mail(records: Records, person: Person) -> None:
    """Plan the mail that a person has received, as threads of one email each."""
    draw = random.Random(f"mail {person.id}")
    known = list(relations(person))
    for sender in [*known, *draw.choices(known, k=6)]:
        when = NOW - timedelta(days=draw.randint(2, 200), minutes=draw.randint(0, 600))
        email = records.add(
            "gmail.Email",
            sender_id=sender,
            recipient_ids=[person.id],
            subject=draw.choice(_SUBJECTS),
            body="Have a look when you find the time.",
            created_at=when,
        )
        thread = records.add(
            "gmail.GlobalEmailThread", email_ids=[email["id"]], created_at=when, updated_at=when
        )
        read = draw.random() < 0.5
        for owner in (sender, person.id):
            records.add(
                "gmail.UserEmailThread",
                global_email_thread_id=thread["id"],
                user_id=owner,
                email_ids=[email["id"]],
                incoming=owner == person.id,
                outgoing=owner == sender,
                read=owner == sender or read,
                created_at=when,
                updated_at=when,
            )
