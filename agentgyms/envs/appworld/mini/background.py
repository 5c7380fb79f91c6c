"""Adds the background records of a task, which its solution does not need."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from agentgyms.envs.appworld.mini import vocabulary
from agentgyms.envs.appworld.mini.people import Person
from agentgyms.envs.appworld.mini.record_builder import Scene
from agentgyms.envs.appworld.mini.records import Address, Song

NUM_SONGS: Final = 48

_CARDS: Final = ("Visa", "Mastercard", "Debit card")
_STREETS: Final = ("Mill Lane", "Park Street", "River Road", "Oak Avenue", "Station Road")
_CITIES: Final = ("Aldham", "Brinton", "Corfield", "Dunmere", "Easton")
_PLACES: Final = ("Town hall", "Room 4", "Library", "Sports center", "Old mill", "")


def fill(scene: Scene) -> None:
    """Add background records to everybody's accounts."""
    _money(scene)
    _music(scene)
    for owner in scene.residents:
        mine = owner is scene.me
        chance = scene.chance
        for subject in chance.sample(vocabulary.NOTE_SUBJECTS, 7 if mine else 3):
            tags = chance.sample(vocabulary.TAGS, chance.below(3))
            scene.note(owner, subject, " ".join(chance.sample(vocabulary.NOTE_LINES, 2)), tags)
        _plans(scene, owner, 5 if mine else 2)
    for person in scene.cast.contacts:
        scene.contact(scene.me, person, person.relation)
    for owner in scene.residents[1:]:
        for person in scene.chance.sample(scene.cast.others, 2):
            scene.contact(owner, person, "friend")


def addresses(scene: Scene) -> list[Address]:
    """Return the supervisor's home and work addresses."""
    chance = scene.chance
    return [
        Address(
            address_id=number,
            name=name,
            street_address=f"{chance.between(1, 99)} {chance.pick(_STREETS)}",
            city=chance.pick(_CITIES),
            state="Westland",
            country="Meridia",
            zip_code=str(chance.between(10000, 99999)),
        )
        for number, name in enumerate(("Home", "Work"), start=1)
    ]


def song_titles(scene: Scene, count: int) -> list[str]:
    """Return `count` different titles."""
    seconds = vocabulary.SONG_SECOND
    numbers = scene.chance.sample(range(len(vocabulary.SONG_FIRST) * len(seconds)), count)
    return [
        f"{vocabulary.SONG_FIRST[n // len(seconds)]} {seconds[n % len(seconds)]}" for n in numbers
    ]


def month_start(scene: Scene, back: int) -> str:
    """Return the first day of the month `back` months ago, in ISO 8601."""
    months = scene.now.year * 12 + scene.now.month - 1 - back
    return f"{months // 12}-{months % 12 + 1:02}-01"


def day_after(scene: Scene, days: int) -> str:
    """Return the day `days` days from now, in ISO 8601."""
    return (scene.now + timedelta(days=days)).date().isoformat()


def _money(scene: Scene) -> None:
    chance = scene.chance
    people = (scene.me, *scene.cast.others)
    for person in people:
        scene.set_balance(person, chance.between(2_000, 90_000))
    scene.set_balance(scene.me, chance.between(120_000, 400_000))
    for name in chance.sample(_CARDS, 2):
        scene.card(scene.me, name, chance.between(1, 4))
    scene.card(scene.cast.contacts[0], chance.pick(_CARDS), 2)
    for number in range(14):
        sender, receiver = chance.sample(people, 2) if number % 2 else _with_me(scene)
        scene.payment(sender, receiver, *_sum(scene), scene.ago(chance.between(1, 150)))
    for number in range(5):
        requester, payer = chance.sample(people, 2) if number % 2 else _with_me(scene)
        scene.request(requester, payer, *_sum(scene), chance.pick(("approved", "declined")))


def _with_me(scene: Scene) -> list[Person]:
    return scene.chance.sample((scene.me, scene.chance.pick(scene.cast.others)), 2)


def _sum(scene: Scene) -> tuple[int, str]:
    return scene.chance.between(300, 9_000), scene.chance.pick(vocabulary.OCCASIONS)


def _music(scene: Scene) -> None:
    chance = scene.chance
    bands = [scene.artist(name, chance.pick(vocabulary.GENRES)) for name in vocabulary.BANDS]
    songs: list[Song] = []
    for title in song_titles(scene, NUM_SONGS):
        band = chance.pick(bands)
        genre = band.genre if chance.below(3) else chance.pick(vocabulary.GENRES)
        songs.append(scene.song(title, band, genre))
    for owner in scene.residents[1:]:
        scene.playlist(owner, chance.pick(vocabulary.PLAYLISTS), chance.sample(songs, 4))
        for song in chance.sample(songs, 4):
            scene.like(owner, song)


def _plans(scene: Scene, owner: Person, count: int) -> None:
    chance = scene.chance
    for title in chance.sample(vocabulary.EVENTS, count):
        day = day_after(scene, chance.between(-10, 25))
        scene.event(owner, title, day, chance.between(8, 19), chance.pick(_PLACES))
    for title in chance.sample(vocabulary.TODOS, count):
        list_name = chance.pick(vocabulary.TODO_LISTS)
        scene.todo(owner, title, list_name, chance.below(3) == 0)
