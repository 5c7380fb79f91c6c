"""The records of the apps of MiniAppWorld: one frozen class for each table.

Records are immutable, so that worlds can share them. Times are text in ISO 8601 without a time zone
(`2024-05-18T12:00:00`), days are `2024-05-18`, and money is an integer number of cents. The first
field of a record is its id, which is unique in its table and at least 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, TypeVar, cast, dataclass_transform

T = TypeVar("T", bound="Record")

DEFAULT_LIST: Final = "inbox"
"""The list of to-dos that name no list."""


class Record:
    """The base class of records; the first of `FIELDS` is the id."""

    __slots__ = ()
    TABLE: ClassVar[str] = ""
    FIELDS: ClassVar[tuple[str, ...]] = ()

    @property
    def key(self) -> int:
        """The record's id in its table."""
        return int(getattr(self, self.FIELDS[0]))

    def reply(self, names: Iterable[str], **others: Any) -> dict[str, Any]:
        """Return an API's reply of these names: fields of the record, or `others`."""
        return {name: others[name] if name in others else getattr(self, name) for name in names}


@dataclass_transform(frozen_default=True, kw_only_default=True)
def _record_of_table(table: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator that makes a class the frozen record class of a table."""

    def make(kind: type[T]) -> type[T]:
        record_class = dataclass(frozen=True, slots=True, kw_only=True)(kind)
        record_class.TABLE = table
        record_class.FIELDS = tuple(field.name for field in fields(cast("Any", record_class)))
        return record_class

    return make


@_record_of_table("")
class Account(Record):
    """An account of a person in an app; each app has a subclass. The user name is the email."""

    account_id: int
    first_name: str
    last_name: str
    email: str
    phone_number: str
    password: str

    @property
    def name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}"


@_record_of_table("notebook.Account")
class NotebookAccount(Account):
    """An account of the notebook app."""


@_record_of_table("purse.Account")
class PurseAccount(Account):
    """An account of the purse app; its money is in the `Balance` of the same id."""


@_record_of_table("jukebox.Account")
class JukeboxAccount(Account):
    """An account of the jukebox app."""


@_record_of_table("rolodex.Account")
class RolodexAccount(Account):
    """An account of the rolodex app."""


@_record_of_table("planner.Account")
class PlannerAccount(Account):
    """An account of the planner app."""


ACCOUNTS: Final[dict[str, type[Account]]] = {
    "notebook": NotebookAccount,
    "purse": PurseAccount,
    "jukebox": JukeboxAccount,
    "rolodex": RolodexAccount,
    "planner": PlannerAccount,
}
"""The class of accounts of each app that has accounts."""


@_record_of_table("supervisor.Task")
class Task(Record):
    """The task and its answer; `answer` is JSON text, "" before an answer is given."""

    task_id: int = 1
    instruction: str
    status: str = "active"
    answer: str = ""


@_record_of_table("supervisor.Profile")
class Profile(Record):
    """The supervisor. Their accounts are those with the same email."""

    profile_id: int = 1
    first_name: str
    last_name: str
    email: str
    phone_number: str
    birthday: str


@_record_of_table("supervisor.Address")
class Address(Record):
    """An address of the supervisor, such as `Home`."""

    address_id: int
    name: str
    street_address: str
    city: str
    state: str
    country: str
    zip_code: str


@_record_of_table("notebook.Note")
class Note(Record):
    """A note."""

    note_id: int
    account_id: int
    title: str
    content: str
    tags: tuple[str, ...] = ()
    pinned: bool = False
    created_at: str
    updated_at: str


@_record_of_table("purse.Balance")
class Balance(Record):
    """The money of the account with this id."""

    account_id: int
    cents: int


@_record_of_table("purse.Card")
class Card(Record):
    """A payment card, valid through its month of expiry."""

    card_id: int
    account_id: int
    card_name: str
    owner_name: str
    card_number: str
    expiry_year: int
    expiry_month: int
    cvv_number: str


@_record_of_table("purse.Payment")
class Payment(Record):
    """Money that was sent from one account to another."""

    payment_id: int
    sender_id: int
    receiver_id: int
    cents: int
    note: str = ""
    private: bool = False
    created_at: str


@_record_of_table("purse.Request")
class Request(Record):
    """Money that one account requests from another; `status`: pending, approved or declined."""

    request_id: int
    requester_id: int
    payer_id: int
    cents: int
    note: str = ""
    status: str = "pending"
    created_at: str


@_record_of_table("purse.TopUp")
class TopUp(Record):
    """Money that was added to an account from a card."""

    top_up_id: int
    account_id: int
    card_id: int
    cents: int
    created_at: str


@_record_of_table("jukebox.Artist")
class Artist(Record):
    """An artist."""

    artist_id: int
    name: str
    genre: str


@_record_of_table("jukebox.Song")
class Song(Record):
    """A song of the catalogue, which all accounts share; rating is in [0, 5]."""

    song_id: int
    title: str
    artist_id: int
    genre: str
    year: int
    seconds: int
    plays: int
    rating: float


@_record_of_table("jukebox.Playlist")
class Playlist(Record):
    """An ordered list of songs, each at most once."""

    playlist_id: int
    account_id: int
    title: str
    song_ids: tuple[int, ...] = ()
    created_at: str


@_record_of_table("jukebox.Like")
class Like(Record):
    """A song that an account likes."""

    like_id: int
    account_id: int
    song_id: int
    liked_at: str


@_record_of_table("rolodex.Contact")
class Contact(Record):
    """A contact of the account's owner; `birthday` is a day or None."""

    contact_id: int
    account_id: int
    name: str
    email: str
    phone: str = ""
    relation: str = ""
    birthday: str | None = None


@_record_of_table("planner.Event")
class Event(Record):
    """An entry of a calendar."""

    event_id: int
    account_id: int
    title: str
    starts_at: str
    ends_at: str
    place: str = ""


@_record_of_table("planner.Todo")
class Todo(Record):
    """A to-do; `due_on` is a day or None."""

    todo_id: int
    account_id: int
    title: str
    list_name: str = DEFAULT_LIST
    due_on: str | None = None
    done: bool = False


KINDS: Final[tuple[type[Record], ...]] = (
    *(Task, Profile, Address),
    *ACCOUNTS.values(),
    *(Note, Balance, Card, Payment, Request, TopUp),
    *(Artist, Song, Playlist, Like, Contact, Event, Todo),
)
"""All record classes, one for each table."""
