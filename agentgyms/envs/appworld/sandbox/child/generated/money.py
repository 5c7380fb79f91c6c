"""Friends, payments and payment requests of the generated world."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from .people import NOW, Person, relations
from .records import Records

_REASONS = (
    *("Coffee", "Concert tickets", "Taxi", "Groceries", "Cinema", "Lunch", "Birthday present"),
    *("Parking", "Books", "Bike repair", "Brunch", "Museum"),
)


def add_payments(records: Records, person: Person) -> None:
    """Plan a person's friends, the payments sent, and the requests received."""
    draw = random.Random(f"money {person.id}")
    known = relations(person)
    for other in known:
        records.add(
            "venmo.Friendship",
            user_id=person.id,
            friend_id=other,
            created_at=datetime(2022, 2, 1, 10),
        )
    for _ in range(18):
        when = NOW - timedelta(days=draw.randint(2, 500), minutes=draw.randint(0, 600))
        records.add(
            "venmo.Transaction",
            sender_id=person.id,
            receiver_id=draw.choice(list(known)),
            amount=draw.randint(300, 9000) / 100,
            description=draw.choice(_REASONS),
            created_at=when,
            updated_at=when,
        )
    senders = [*known, *draw.choices(list(known), k=5)]
    for index, sender in enumerate(senders):
        _add_request(records, draw, sender, person.id, done=index >= len(senders) - 3)


def _add_request(
    records: Records, draw: random.Random, sender: int, receiver: int, *, done: bool
) -> None:
    when = NOW - timedelta(days=draw.randint(4, 30), minutes=draw.randint(0, 600))
    records.add(
        "venmo.PaymentRequest",
        sender_id=sender,
        receiver_id=receiver,
        amount=draw.randint(300, 5000) / 100,
        description=draw.choice(_REASONS),
        created_at=when,
        updated_at=when,
        approved_at=None,
        denied_at=when + timedelta(days=1) if done else None,
    )
