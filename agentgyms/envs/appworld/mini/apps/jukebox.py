"""The jukebox app: songs, playlists and liked songs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agentgyms.envs.appworld.mini.api import PAGE, ApiError, App, Plain, Session, matches, page
from agentgyms.envs.appworld.mini.parameters import Integer, Text
from agentgyms.envs.appworld.mini.records import Artist, JukeboxAccount, Like, Playlist, Song

JUKEBOX: Final = App("jukebox", "Has songs, playlists and a list of liked songs.", JukeboxAccount)

_SONG_ID: Final = Integer("song_id", "Id of the song.")
_PLAYLIST_ID: Final = Integer("playlist_id", "Id of the playlist.")
_TITLE: Final = Text("title", "Title of the playlist; no other of yours may have it.", shortest=1)
_MESSAGE: Final = {"message": "string"}
_SONG: Final = {
    "song_id": 1,
    "title": "string",
    "artist_id": 1,
    "artist": "string",
    "genre": "string",
    "year": 2001,
    "seconds": 180,
    "plays": 1000,
    "rating": 4.5,
}
_PLAYLIST: Final = {
    "playlist_id": 1,
    "title": "string",
    "song_count": 1,
    "created_at": "2024-05-18T12:00:00",
}


@JUKEBOX.api(
    "List songs of the catalogue, in the order of their ids.",
    Text("query", "Words that the title or the artist's name must have; any case.", default=""),
    Text("artist", "Only songs of the artist with this full name; any case.", default=None),
    Text("genre", "Only songs of this genre; any case.", default=None),
    *PAGE,
    returns=[_SONG],
)
def search_songs(
    session: Session,
    query: str,
    artist: str | None,
    genre: str | None,
    page_index: int,
    page_limit: int,
) -> Plain:
    """Return a page of songs."""
    artists = session.database.of(Artist)
    found = [
        song
        for song in session.database.of(Song).values()
        if (genre is None or song.genre.lower() == genre.lower())
        and (artist is None or artists[song.artist_id].name.lower() == artist.lower())
        and matches(query, song.title, artists[song.artist_id].name)
    ]
    return [_plain(session, song) for song in page(found, page_index, page_limit)]


@JUKEBOX.api("Show a song; seconds is its length.", _SONG_ID, returns=_SONG)
def show_song(session: Session, song_id: int) -> Plain:
    """Return the song."""
    return _plain(session, _song(session, song_id))


@JUKEBOX.api(
    "Show an artist and the ids of the artist's songs.",
    Integer("artist_id", "Id of the artist."),
    returns={"artist_id": 1, "name": "string", "genre": "string", "song_ids": [1]},
)
def show_artist(session: Session, artist_id: int) -> Plain:
    """Return the artist."""
    artist = session.database.of(Artist).get(artist_id)
    if artist is None:
        raise ApiError(404, f"There is no artist with artist_id {artist_id}.")
    songs = session.database.of(Song).values()
    return {
        "artist_id": artist_id,
        "name": artist.name,
        "genre": artist.genre,
        "song_ids": [song.song_id for song in songs if song.artist_id == artist_id],
    }


@JUKEBOX.api(
    "List your playlists, oldest first, without their songs (show_playlist has them).",
    *PAGE,
    returns=[_PLAYLIST],
)
def show_playlists(session: Session, page_index: int, page_limit: int) -> Plain:
    """Return a page of playlists."""
    return [
        playlist.reply(_PLAYLIST, song_count=len(playlist.song_ids))
        for playlist in page(session.mine(Playlist), page_index, page_limit)
    ]


@JUKEBOX.api(
    "Show one of your playlists with its songs, in its order.",
    _PLAYLIST_ID,
    returns={**_PLAYLIST, "songs": [_SONG]},
)
def show_playlist(session: Session, playlist_id: int) -> Plain:
    """Return the playlist."""
    playlist = _playlist(session, playlist_id)
    songs = session.database.of(Song)
    listed = [_plain(session, songs[song_id]) for song_id in playlist.song_ids]
    names = (*_PLAYLIST, "songs")
    return playlist.reply(names, song_count=len(listed), songs=listed)


@JUKEBOX.api(
    "Create a playlist without songs.", _TITLE, returns={"message": "string", "playlist_id": 1}
)
def create_playlist(session: Session, title: str) -> Plain:
    """Return the new playlist's id."""
    _check_title(session, title)
    playlist = session.new(Playlist, account_id=session.me, title=title, created_at=session.now)
    return {"message": "The playlist was created.", "playlist_id": playlist.playlist_id}


@JUKEBOX.api("Rename one of your playlists.", _PLAYLIST_ID, _TITLE, returns=_MESSAGE)
def rename_playlist(session: Session, playlist_id: int, title: str) -> Plain:
    """Return a message."""
    playlist = _playlist(session, playlist_id)
    _check_title(session, title)
    session.database.replace(replace(playlist, title=title))
    return {"message": "The playlist was renamed."}


@JUKEBOX.api("Delete one of your playlists.", _PLAYLIST_ID, returns=_MESSAGE)
def delete_playlist(session: Session, playlist_id: int) -> Plain:
    """Return a message."""
    session.database.remove(_playlist(session, playlist_id))
    return {"message": "The playlist was deleted."}


@JUKEBOX.api(
    "Add a song at the end of one of your playlists.", _PLAYLIST_ID, _SONG_ID, returns=_MESSAGE
)
def add_song(session: Session, playlist_id: int, song_id: int) -> Plain:
    """Return a message."""
    playlist = _playlist(session, playlist_id)
    song = _song(session, song_id)
    if song_id in playlist.song_ids:
        raise ApiError(409, f"The song with song_id {song_id} is in the playlist already.")
    session.database.replace(replace(playlist, song_ids=(*playlist.song_ids, song.song_id)))
    return {"message": "The song was added."}


@JUKEBOX.api("Take a song out of one of your playlists.", _PLAYLIST_ID, _SONG_ID, returns=_MESSAGE)
def remove_song(session: Session, playlist_id: int, song_id: int) -> Plain:
    """Return a message."""
    playlist = _playlist(session, playlist_id)
    if song_id not in playlist.song_ids:
        raise ApiError(404, f"The playlist has no song with song_id {song_id}.")
    left = tuple(each for each in playlist.song_ids if each != song_id)
    session.database.replace(replace(playlist, song_ids=left))
    return {"message": "The song was removed."}


@JUKEBOX.api(
    "List the songs that you like, in the order in which you liked them.",
    *PAGE,
    returns=[{**_SONG, "liked_at": "2024-05-18T12:00:00"}],
)
def show_liked_songs(session: Session, page_index: int, page_limit: int) -> Plain:
    """Return a page of songs."""
    songs = session.database.of(Song)
    return [
        {**_plain(session, songs[like.song_id]), "liked_at": like.liked_at}
        for like in page(session.mine(Like), page_index, page_limit)
    ]


@JUKEBOX.api("Like a song.", _SONG_ID, returns=_MESSAGE)
def like_song(session: Session, song_id: int) -> Plain:
    """Return a message."""
    song = _song(session, song_id)
    if _like(session, song_id) is not None:
        raise ApiError(409, f"You like the song with song_id {song_id} already.")
    session.new(Like, account_id=session.me, song_id=song.song_id, liked_at=session.now)
    return {"message": "You like the song."}


@JUKEBOX.api("Take a song out of those that you like.", _SONG_ID, returns=_MESSAGE)
def unlike_song(session: Session, song_id: int) -> Plain:
    """Return a message."""
    _song(session, song_id)
    like = _like(session, song_id)
    if like is None:
        raise ApiError(409, f"You do not like the song with song_id {song_id}.")
    session.database.remove(like)
    return {"message": "You no longer like the song."}


def _song(session: Session, song_id: int) -> Song:
    song = session.database.of(Song).get(song_id)
    if song is None:
        raise ApiError(404, f"There is no song with song_id {song_id}.")
    return song


def _playlist(session: Session, playlist_id: int) -> Playlist:
    return session.find_mine(Playlist, playlist_id, "playlist")


def _check_title(session: Session, title: str) -> None:
    if any(playlist.title == title for playlist in session.mine(Playlist)):
        raise ApiError(409, "You have a playlist with this title already.")


def _like(session: Session, song_id: int) -> Like | None:
    return next((like for like in session.mine(Like) if like.song_id == song_id), None)


def _plain(session: Session, song: Song) -> dict[str, Plain]:
    return song.reply(_SONG, artist=session.database.of(Artist)[song.artist_id].name)
