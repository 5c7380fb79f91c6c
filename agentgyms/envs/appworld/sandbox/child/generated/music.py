"""Songs, libraries and playlists of the generated world."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from .people import NOW, Person
from .records import Records

GENRES = ("folk", "jazz", "rock", "electronic", "classical")
PLAYLISTS = ("Morning Coffee", "Long Drive", "Rainy Evening", "Kitchen Dance", "Deep Focus")
_ARTISTS = (
    *("The Paper Lanterns", "Velvet Harbour", "Ines Calder", "Northbound Choir", "Tin Parade"),
    *("Marta Quill", "Static Orchard", "The Slow Ferries", "Otis Wren", "Glass Meridian"),
)
_FIRST = ("Silver", "Hidden", "Burning", "Quiet", "Broken", "Golden", "Distant", "Hollow")
_SECOND = ("Rivers", "Windows", "Signals", "Gardens", "Letters", "Harvest", "Mirrors", "Engines")


def add_catalogue(records: Records) -> None:
    """Plan artists, albums and songs."""
    draw = random.Random("catalogue")
    titles = draw.sample([f"{a} {b}" for a in _FIRST for b in _SECOND], 60)
    durations = draw.sample(range(130, 420), 60)
    plays = draw.sample(range(100, 1000), 60)
    for index, name in enumerate(_ARTISTS):
        genre = GENRES[index % len(GENRES)]
        artist = records.add(
            "spotify.Artist", name=name, genre=genre, created_at=datetime(2015, 1, 1)
        )
        for part in range(2):
            released = datetime(draw.randint(2005, 2022), draw.randint(1, 12), draw.randint(1, 28))
            album = records.add(
                "spotify.Album",
                title=f"{name}: Volume {part + 1}",
                artist_ids=[artist["id"]],
                release_date=released,
                genre=genre,
            )
            for _ in range(3):
                records.add(
                    "spotify.Song",
                    title=titles.pop(),
                    artist_ids=[artist["id"]],
                    album_id=album["id"],
                    duration=durations.pop(),
                    release_date=released,
                    genre=genre,
                    play_count=plays.pop(),
                )


def add_listening(records: Records, person: Person) -> None:
    """Plan a person's song library, playlists and followed artists."""
    draw = random.Random(f"music {person.id}")
    songs = [song["id"] for song in records.of("spotify.Song")]
    for song_id in draw.sample(songs, draw.randint(14, 20)):
        records.add(
            "spotify.UserLibrarySong", user_id=person.id, song_id=song_id, created_at=_when(draw)
        )
    for title in PLAYLISTS:
        playlist = records.add(
            "spotify.Playlist", title=title, user_id=person.id, created_at=datetime(2022, 6, 1)
        )
        for song_id in draw.sample(songs, draw.randint(4, 6)):
            records.add(
                "spotify.PlaylistSong",
                playlist_id=playlist["id"],
                song_id=song_id,
                added_at=_when(draw),
            )
    for artist in draw.sample(records.of("spotify.Artist"), 4):
        records.add(
            "spotify.UserArtistFollowing",
            user_id=person.id,
            artist_id=artist["id"],
            created_at=_when(draw),
        )
    records.add("spotify.MusicPlayer", user_id=person.id)


def _when(draw: random.Random) -> datetime:
    return NOW - timedelta(days=draw.randint(3, 300), minutes=draw.randint(0, 1000))
