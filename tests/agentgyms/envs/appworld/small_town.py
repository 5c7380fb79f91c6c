"""A small MiniAppWorld of our own: Ada asks, Ben knows her, and Cyd is a stranger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgyms.envs.appworld.mini.apps import API_NAMES
from agentgyms.envs.appworld.mini.database import Database
from agentgyms.envs.appworld.mini.records import (
    ACCOUNTS,
    Address,
    Artist,
    Balance,
    Card,
    Contact,
    Event,
    Like,
    Note,
    Payment,
    Playlist,
    Profile,
    Record,
    Request,
    Song,
    Task,
    Todo,
)
from agentgyms.envs.appworld.mini.tracker import Check
from agentgyms.envs.appworld.mini.world import MiniTask, MiniWorld
from agentgyms.envs.appworld.world import ApiResponse, Brief

NOW = "2024-05-18T12:00:00"
EARLIER = "2024-05-01T08:30:00"
INSTRUCTION = "Delete my note about lamps."
ADA = {"first_name": "Ada", "last_name": "Hill", "email": "ada@mail.test", "phone_number": "555"}
BEN = {"first_name": "Ben", "last_name": "Hill", "email": "ben@mail.test", "phone_number": "556"}
CYD = {"first_name": "Cyd", "last_name": "Ford", "email": "cyd@mail.test", "phone_number": "557"}


def password(person: Mapping[str, str], app: str) -> str:
    """Return the password of a person in an app."""
    return f"{person['first_name']}-{app}-secret"


def _records() -> list[Record]:
    accounts: list[Record] = [
        kind(account_id=number, **person, password=password(person, app))
        for app, kind in ACCOUNTS.items()
        for number, person in enumerate((ADA, BEN, CYD), 1)
    ]
    return [
        Task(instruction=INSTRUCTION),
        Profile(**ADA, birthday="1990-02-03"),
        Address(
            address_id=1,
            name="Home",
            street_address="1 Mill Lane",
            city="Ely",
            state="Iowa",
            country="USA",
            zip_code="52227",
        ),
        *accounts,
        *_notes(),
        *_purse(),
        *_jukebox(),
        *_contacts_and_plans(),
    ]


def _notes() -> list[Record]:
    notes = [
        (1, "Lamps", "Buy two bulbs.", ("home",), True),
        (1, "Trip", "Lamp, tent, rope.", ("travel", "home"), False),
        (2, "Ben's lamps", "Secret of Ben.", ("home",), False),
        *((1, f"Day {day}", f"Walked {day} miles.", ("walks",), False) for day in range(1, 31)),
    ]
    return [
        Note(
            note_id=number,
            account_id=owner,
            title=title,
            content=content,
            tags=tags,
            pinned=pinned,
            created_at=EARLIER,
            updated_at=EARLIER,
        )
        for number, (owner, title, content, tags, pinned) in enumerate(notes, 1)
    ]


def _purse() -> list[Record]:
    card = {"owner_name": "Ada Hill", "expiry_month": 5, "cvv_number": "123"}
    return [
        Balance(account_id=1, cents=10_000),
        Balance(account_id=2, cents=2_050),
        Balance(account_id=3, cents=0),
        Card(card_id=1, account_id=1, card_name="Blue", card_number="41", expiry_year=2024, **card),
        Card(card_id=2, account_id=1, card_name="Old", card_number="42", expiry_year=2023, **card),
        Card(card_id=3, account_id=2, card_name="Ben", card_number="43", expiry_year=2030, **card),
        Payment(payment_id=1, sender_id=1, receiver_id=2, cents=1_250, created_at=EARLIER),
        Payment(payment_id=2, sender_id=2, receiver_id=1, cents=300, created_at="2024-05-02"),
        Payment(payment_id=3, sender_id=2, receiver_id=3, cents=300, created_at=EARLIER),
        Request(request_id=1, requester_id=2, payer_id=1, cents=4_000, created_at=EARLIER),
        Request(request_id=2, requester_id=3, payer_id=1, cents=90_000, created_at=EARLIER),
        Request(request_id=3, requester_id=1, payer_id=2, cents=100, created_at=EARLIER),
        Request(
            request_id=4,
            requester_id=2,
            payer_id=1,
            cents=50,
            status="declined",
            created_at=EARLIER,
        ),
    ]


def _jukebox() -> list[Record]:
    songs = [
        Song(
            song_id=number,
            title=f"Song {number}",
            artist_id=1 + number % 2,
            genre="Folk" if number % 3 else "Jazz",
            year=1990 + number,
            seconds=100 + number,
            plays=number * 10,
            rating=number / 10,
        )
        for number in range(1, 31)
    ]
    return [
        Artist(artist_id=1, name="The Kettles", genre="Folk"),
        Artist(artist_id=2, name="Moss", genre="Jazz"),
        *songs,
        Playlist(playlist_id=1, account_id=1, title="Morning", song_ids=(3, 1), created_at=EARLIER),
        Playlist(playlist_id=2, account_id=2, title="Ben's", song_ids=(2,), created_at=EARLIER),
        Playlist(playlist_id=3, account_id=1, title="Empty", created_at=EARLIER),
        Like(like_id=1, account_id=1, song_id=7, liked_at=EARLIER),
        Like(like_id=2, account_id=2, song_id=8, liked_at=EARLIER),
        Like(like_id=3, account_id=1, song_id=3, liked_at=EARLIER),
    ]


def _contacts_and_plans() -> list[Record]:
    event = {"starts_at": "2024-05-20T10:00:00", "ends_at": "2024-05-20T11:00:00"}
    return [
        Contact(
            contact_id=1,
            account_id=1,
            name="Ben Hill",
            email=BEN["email"],
            phone="556",
            relation="brother",
            birthday="1992-01-01",
        ),
        Contact(contact_id=2, account_id=1, name="Al Frost", email="al@mail.test"),
        Contact(contact_id=3, account_id=2, name="Ada Hill", email=ADA["email"]),
        Event(event_id=1, account_id=1, title="Dentist", **event),
        Event(event_id=2, account_id=2, title="Ben's day", **event),
        Event(
            event_id=3,
            account_id=1,
            title="Lunch",
            starts_at="2024-05-19T12:00:00",
            ends_at="2024-05-19T13:00:00",
        ),
        Todo(todo_id=1, account_id=1, title="Paint the door"),
        Todo(todo_id=2, account_id=1, title="Buy paint", list_name="shop", done=True),
        Todo(todo_id=3, account_id=2, title="Ben's to-do"),
    ]


DATABASE = Database(_records())


def world(checks: Sequence[Check] = ()) -> MiniWorld:
    """Return a new world of the small town."""
    brief = Brief("lamps-t001_1", INSTRUCTION, ADA, NOW, 1, API_NAMES)
    return MiniWorld(MiniTask(brief, DATABASE, checks, salt="lamps-t001_1"))


def log_in(town: MiniWorld, app: str, person: Mapping[str, str] = ADA) -> str:
    """Return a person's access token."""
    secrets = {"username": person["email"], "password": password(person, app)}
    return str(value(town.call(app, "login", secrets))["access_token"])


def ask(
    town: MiniWorld, app: str, api: str, person: Mapping[str, str] = ADA, **arguments: Any
) -> ApiResponse:
    """Return the reply to a call that a person makes, logged in where that is needed."""
    if app in ACCOUNTS and api != "login":
        arguments["access_token"] = log_in(town, app, person)
    return town.call(app, api, arguments)


def value(reply: ApiResponse) -> Any:
    """Return the value of a reply that is no error."""
    assert not reply.error, reply.error
    assert reply.status == 200
    return reply.value
