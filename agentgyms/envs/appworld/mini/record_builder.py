"""Builds the initial records of a task: everybody's accounts, and the records of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar, cast

from agentgyms.core.randomness import Chance
from agentgyms.envs.appworld.mini.database import Database
from agentgyms.envs.appworld.mini.people import Cast, Person
from agentgyms.envs.appworld.mini.records import (
    ACCOUNTS,
    KINDS,
    Artist,
    Balance,
    Card,
    Contact,
    Event,
    Like,
    Note,
    Payment,
    Playlist,
    Record,
    Request,
    Song,
    Todo,
)

R = TypeVar("R", bound=Record)

_MAX_ID: Final = 999


class Scene:
    """A task's records by table; ids are random, to give no hint. Everyone has a purse account."""

    def __init__(self, chance: Chance, cast: Cast, now: datetime) -> None:
        self.chance = chance
        self.cast = cast
        self.now = now
        self.me = cast.supervisor
        self._records: dict[str, dict[int, Record]] = {kind.TABLE: {} for kind in KINDS}
        self._accounts: dict[tuple[str, str], int] = {}
        self.residents = (cast.supervisor, *cast.contacts[-2:], *cast.strangers[:1])
        for app in ACCOUNTS:
            for person in self.residents if app != "purse" else (cast.supervisor, *cast.others):
                kind = ACCOUNTS[app]
                account = kind(
                    account_id=self._id(kind),
                    first_name=person.first_name,
                    last_name=person.last_name,
                    email=person.email,
                    phone_number=person.phone_number,
                    password=f"{self.chance.below(16**9):09x}",
                )
                self._accounts[app, person.email] = self._add(account).account_id

    def of(self, kind: type[R]) -> list[R]:
        """Return the records of a kind so far, sorted by id."""
        table = self._records[kind.TABLE]
        return [table[key] for key in sorted(table)]  # type: ignore[misc]

    def mine(self, kind: type[R]) -> list[R]:
        """Return the supervisor's records of a kind so far, sorted by id."""
        account = self.account(kind.TABLE.split(".")[0], self.me)
        return [each for each in self.of(kind) if each.account_id == account]  # type: ignore[attr-defined]

    def account(self, app: str, person: Person) -> int:
        """Return the id of a person's account."""
        return self._accounts[app, person.email]

    def database(self, *more: Record) -> Database:
        """Return all records as a database, with more of tables in which the scene has none."""
        records = {kind.TABLE: self.of(kind) for kind in KINDS}
        # Apps list these by id, and document that order as the order of time.
        records["notebook.Note"] = _in_time(self.of(Note), "created_at", "updated_at")
        records["jukebox.Playlist"] = _in_time(self.of(Playlist), "created_at")
        records["jukebox.Like"] = _in_time(self.of(Like), "liked_at")
        return Database([*more, *(record for table in records.values() for record in table)])

    def ago(self, days: int) -> str:
        """Return the time so many days ago, at a random time of day."""
        seconds = self.chance.below(40_000) + 24_000
        midnight = datetime(self.now.year, self.now.month, self.now.day)
        return (midnight - timedelta(days=days) + timedelta(seconds=seconds)).isoformat()

    def note(
        self,
        owner: Person,
        title: str,
        content: str,
        tags: Sequence[str] = (),
        after: Note | None = None,
    ) -> Note:
        """Add a note, written some time ago and later than `after`."""
        written = self.ago(self.chance.between(2, 90))
        return self._add(
            Note(
                note_id=self._id(Note, after.key if after else 0),
                account_id=self.account("notebook", owner),
                title=title,
                content=content,
                tags=tuple(tags),
                pinned=self.chance.below(6) == 0,
                created_at=written,
                updated_at=written,
            )
        )

    def payment(
        self, sender: Person, receiver: Person, cents: int, note: str, created_at: str
    ) -> Payment:
        """Add a past payment, without changing balances."""
        return self._add(
            Payment(
                payment_id=self._id(Payment),
                sender_id=self.account("purse", sender),
                receiver_id=self.account("purse", receiver),
                cents=cents,
                note=note,
                created_at=created_at,
            )
        )

    def request(
        self, requester: Person, payer: Person, cents: int, note: str, status: str = "pending"
    ) -> Request:
        """Add a request for money from the last weeks."""
        return self._add(
            Request(
                request_id=self._id(Request),
                requester_id=self.account("purse", requester),
                payer_id=self.account("purse", payer),
                cents=cents,
                note=note,
                status=status,
                created_at=self.ago(self.chance.between(1, 40)),
            )
        )

    def card(self, owner: Person, name: str, years: int) -> Card:
        """Add a payment card that is valid for so many years from now; negative if expired."""
        return self._add(
            Card(
                card_id=self._id(Card),
                account_id=self.account("purse", owner),
                card_name=name,
                owner_name=owner.name,
                card_number="".join(str(self.chance.below(10)) for _ in range(16)),
                expiry_year=self.now.year + years,
                expiry_month=self.chance.between(1, 12),
                cvv_number=str(self.chance.between(100, 999)),
            )
        )

    def set_balance(self, owner: Person, cents: int) -> None:
        """Set a person's balance."""
        self._add(Balance(account_id=self.account("purse", owner), cents=cents))

    def balance(self, owner: Person) -> int:
        """Return a person's balance in cents."""
        return self._records["purse.Balance"][self.account("purse", owner)].cents  # type: ignore[attr-defined, no-any-return]

    def artist(self, name: str, genre: str) -> Artist:
        """Add an artist."""
        return self._add(Artist(artist_id=self._id(Artist), name=name, genre=genre))

    def song(self, title: str, artist: Artist, genre: str) -> Song:
        """Add a song to the catalogue; its numbers are random."""
        return self._add(
            Song(
                song_id=self._id(Song),
                title=title,
                artist_id=artist.artist_id,
                genre=genre,
                year=self.chance.between(1975, 2022),
                seconds=self.chance.between(120, 420),
                plays=self.chance.between(5, 990) * 10,
                rating=self.chance.between(20, 50) / 10,
            )
        )

    def playlist(self, owner: Person, title: str, songs: Sequence[Song]) -> Playlist:
        """Add a playlist."""
        return self._add(
            Playlist(
                playlist_id=self._id(Playlist),
                account_id=self.account("jukebox", owner),
                title=title,
                song_ids=tuple(song.song_id for song in songs),
                created_at=self.ago(self.chance.between(5, 300)),
            )
        )

    def like(self, owner: Person, song: Song) -> Like:
        """Add a like of a person for a song."""
        return self._add(
            Like(
                like_id=self._id(Like),
                account_id=self.account("jukebox", owner),
                song_id=song.song_id,
                liked_at=self.ago(self.chance.between(1, 200)),
            )
        )

    def contact(self, owner: Person, person: Person, relation: str) -> Contact:
        """Add a contact of a person."""
        return self._add(
            Contact(
                contact_id=self._id(Contact),
                account_id=self.account("rolodex", owner),
                name=person.name,
                email=person.email,
                phone=person.phone_number,
                relation=relation,
                birthday=person.birthday,
            )
        )

    def event(self, owner: Person, title: str, day: str, hour: int, place: str = "") -> Event:
        """Add an event of one hour on a day (ISO 8601)."""
        return self._add(
            Event(
                event_id=self._id(Event),
                account_id=self.account("planner", owner),
                title=title,
                starts_at=f"{day}T{hour:02}:00:00",
                ends_at=f"{day}T{hour + 1:02}:00:00",
                place=place,
            )
        )

    def todo(self, owner: Person, title: str, list_name: str, done: bool = False) -> Todo:
        """Add a to-do."""
        return self._add(
            Todo(
                todo_id=self._id(Todo),
                account_id=self.account("planner", owner),
                title=title,
                list_name=list_name,
                done=done,
            )
        )

    def _add(self, record: R) -> R:
        self._records[record.TABLE][record.key] = record
        return record

    def _id(self, kind: type[Record], above: int = 0) -> int:
        table = self._records[kind.TABLE]
        while (key := above + self.chance.between(1, _MAX_ID)) in table:
            pass
        return key


def _in_time(records: Sequence[R], *fields: str) -> list[R]:
    """Return records with their times sorted into the order of the records."""
    moments = sorted(getattr(record, fields[0]) for record in records)
    return [
        replace(cast("Any", record), **dict.fromkeys(fields, moment))
        for record, moment in zip(records, moments, strict=True)
    ]
