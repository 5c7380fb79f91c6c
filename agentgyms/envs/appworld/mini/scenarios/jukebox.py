"""Scenarios of the jukebox."""

from __future__ import annotations

from collections.abc import Sequence

from agentgyms.envs.appworld.mini import vocabulary
from agentgyms.envs.appworld.mini.background import song_titles
from agentgyms.envs.appworld.mini.record_builder import Scene
from agentgyms.envs.appworld.mini.records import Artist, Like, Playlist, Song
from agentgyms.envs.appworld.mini.solution_blocks import begin, finish, pages
from agentgyms.envs.appworld.mini.template import Change, Draw, Plan, plan, quoted, template

_LIKED = pages("songs", "apis.jukebox.show_liked_songs(access_token=token")


@template(difficulty=1)
def like_song(draw: Draw) -> Plan:
    """Like a song; another artist's song has the same title."""
    scene, chance = draw.scene, draw.chance
    songs = scene.of(Song)
    _like(scene, chance.sample(songs[:20], 5))
    found = songs[20 + draw.choose("song", range(20))]
    artists = {artist.key: artist for artist in scene.of(Artist)}
    other = chance.pick([artist for key, artist in artists.items() if key != found.artist_id])
    song = max(found, scene.song(found.title, other, found.genre), key=lambda each: each.key)
    artist = artists[song.artist_id].name
    instruction = draw.wording(
        "Like the song '{title}' by {artist} in Jukebox.",
        "I love '{title}' by {artist}. Like that song for me in Jukebox.",
    )
    return plan(
        instruction.format(title=song.title, artist=artist),
        [
            *begin(jukebox=""),
            "songs = apis.jukebox.search_songs("
            f"access_token=token, query={quoted(song.title)}, artist={quoted(artist)})\n"
            "print(songs)",
            'song_id = next(s["song_id"] for s in songs if s["title"] == '
            f"{quoted(song.title)})\n"
            "apis.jukebox.like_song(access_token=token, song_id=song_id)",
            finish(),
        ],
        Change(
            "The song by that artist is liked, no other.",
            Like,
            added=[{"account_id": scene.account("jukebox", scene.me), "song_id": song.key}],
        ),
    )


@template(difficulty=1)
def longest_song(draw: Draw) -> Plan:
    """Find the longest song of a playlist."""
    scene, chance = draw.scene, draw.chance
    title = draw.choose("title", vocabulary.PLAYLISTS)
    by_length = {song.seconds: song for song in scene.of(Song)}
    ordered = [by_length[seconds] for seconds in sorted(by_length)]
    listed = chance.sample(ordered[:-4], chance.between(6, 9))
    scene.playlist(scene.me, f"{title} (old)", ordered[-4:])
    scene.playlist(scene.me, title, listed)
    instruction = draw.wording(
        "What is the title of the longest song in my Jukebox playlist '{title}'?",
        "Which song of my playlist '{title}' plays the longest? Give its title.",
    )
    return plan(
        instruction.format(title=title),
        [
            *begin(jukebox=""),
            "playlists = apis.jukebox.show_playlists(access_token=token, page_limit=20)\n"
            "print(playlists)",
            _playlist_id("playlist_id", title) + "\n"
            "songs = apis.jukebox.show_playlist("
            'access_token=token, playlist_id=playlist_id)["songs"]\n'
            "print(songs)",
            finish('max(songs, key=lambda s: s["seconds"])["title"]'),
        ],
        answer=max(listed, key=lambda song: song.seconds).title,
    )


@template(difficulty=2)
def liked_playlist(draw: Draw) -> Plan:
    """Make a playlist of the liked songs of a genre."""
    scene, chance = draw.scene, draw.chance
    title = draw.choose("title", vocabulary.PLAYLISTS)
    genre = draw.choose("genre", vocabulary.GENRES)
    artists = scene.of(Artist)
    titles = song_titles(scene, 4)
    liked = [
        *[scene.song(f"{title} III", scene.chance.pick(artists), genre) for title in titles],
        *chance.sample(scene.of(Song), 24),
    ]
    liked = _like(scene, liked)
    instruction = draw.wording(
        "Make a Jukebox playlist with the title '{title}' of all {genre} songs that I like.",
        "Create a playlist '{title}' in Jukebox. It should have every {genre} song among my liked "
        "songs and nothing else.",
    )
    return plan(
        instruction.format(title=title, genre=genre),
        [
            *begin(jukebox="show_liked_songs create_playlist add_song"),
            _LIKED + "\nprint(len(songs), songs[0])",
            f"made = apis.jukebox.create_playlist(access_token=token, title={quoted(title)})\n"
            "for song in songs:\n"
            f'    if song["genre"] == {quoted(genre)}:\n'
            "        apis.jukebox.add_song(access_token=token, "
            'playlist_id=made["playlist_id"], song_id=song["song_id"])',
            finish(),
        ],
        Change(
            "A playlist with the title has exactly the liked songs of the genre.",
            Playlist,
            added=[
                {
                    "account_id": scene.account("jukebox", scene.me),
                    "title": title,
                    "song_ids": [song.key for song in liked if song.genre == genre],
                }
            ],
        ),
    )


@template(difficulty=2)
def liked_seconds(draw: Draw) -> Plan:
    """Sum the lengths of the liked songs of an artist."""
    scene, chance = draw.scene, draw.chance
    artist = next(a for a in scene.of(Artist) if a.name == draw.choose("artist", vocabulary.BANDS))
    titles = song_titles(scene, 4)
    mine = [scene.song(f"{title} II", artist, artist.genre) for title in titles]
    liked = _like(scene, [*mine[:3], *chance.sample(scene.of(Song)[:-4], 24)])
    instruction = draw.wording(
        "How many seconds do the songs by {artist} that I like in Jukebox last in all?",
        "Add up the lengths of all songs by {artist} among my liked songs in Jukebox. How many "
        "seconds is that?",
    )
    return plan(
        instruction.format(artist=artist.name),
        [
            *begin(jukebox="show_liked_songs"),
            _LIKED + "\nprint(len(songs), songs[0])",
            'total = sum(s["seconds"] for s in songs '
            f'if s["artist"] == {quoted(artist.name)})\nprint(total)',
            finish("total"),
        ],
        answer=sum(song.seconds for song in liked if song.artist_id == artist.key),
    )


@template(difficulty=3)
def move_songs(draw: Draw) -> Plan:
    """Move the songs of more than so many plays from one playlist to another."""
    scene, chance = draw.scene, draw.chance
    title = draw.choose("title", vocabulary.PLAYLISTS[::2])
    target = draw.choose("target", vocabulary.PLAYLISTS[1::2])
    songs = chance.sample(scene.of(Song), 18)
    listed, kept = songs[:13], songs[13:]
    limit = sorted(song.plays for song in listed)[chance.between(5, 8)]
    moved = [song for song in listed if song.plays > limit]
    stay = [song for song in listed if song.plays <= limit]
    old, new = scene.playlist(scene.me, title, listed), scene.playlist(scene.me, target, kept)
    scene.playlist(scene.me, f"{target} (live)", chance.sample(songs, 3))
    instruction = draw.wording(
        "Move all songs with more than {limit} plays from my Jukebox playlist '{title}' to "
        "'{target}'. How many did you move?",
        "In Jukebox, take the songs that were played more than {limit} times out of my playlist "
        "'{title}', add them to '{target}', and tell me how many they are.",
    )
    return plan(
        instruction.format(limit=limit, title=title, target=target),
        [
            *begin(jukebox="show_playlists show_playlist add_song remove_song"),
            "playlists = apis.jukebox.show_playlists(access_token=token, page_limit=20)\n"
            + "print(playlists)",
            _playlist_id("source", title) + "\n" + _playlist_id("target", target) + "\n"
            "songs = apis.jukebox.show_playlist("
            'access_token=token, playlist_id=source)["songs"]\n'
            f'moved = [s["song_id"] for s in songs if s["plays"] > {limit}]\n'
            "print(len(songs), len(moved))",
            "for song_id in moved:\n"
            "    apis.jukebox.add_song("
            "access_token=token, playlist_id=target, song_id=song_id)\n"
            "    apis.jukebox.remove_song("
            "access_token=token, playlist_id=source, song_id=song_id)",
            finish("len(moved)"),
        ],
        Change(
            "Exactly the songs of more plays are in the other playlist now.",
            Playlist,
            updated={
                old.key: {"song_ids": [song.key for song in stay]},
                new.key: {"song_ids": [song.key for song in (*kept, *moved)]},
            },
        ),
        answer=len(moved),
    )


@template(difficulty=1)
def rename_playlist(draw: Draw) -> Plan:
    """Give a playlist another title."""
    scene, chance = draw.scene, draw.chance
    title = draw.choose("title", vocabulary.PLAYLISTS[::2])
    new = draw.choose("new", vocabulary.PLAYLISTS[1::2])
    songs = scene.of(Song)
    for other in (f"{title} 2", f"{title} (loud)"):
        scene.playlist(scene.me, other, chance.sample(songs, 3))
    target = scene.playlist(scene.me, title, chance.sample(songs, 5))
    instruction = draw.wording(
        "Rename my Jukebox playlist '{title}' to '{new}'.",
        "My playlist '{title}' in Jukebox should be called '{new}' from now on.",
    )
    return plan(
        instruction.format(title=title, new=new),
        [
            *begin(jukebox=""),
            "playlists = apis.jukebox.show_playlists(access_token=token, page_limit=20)\n"
            "print(playlists)",
            _playlist_id("playlist_id", title) + "\n"
            "apis.jukebox.rename_playlist("
            f"access_token=token, playlist_id=playlist_id, title={quoted(new)})",
            finish(),
        ],
        Change(
            "The playlist has the new title and its songs; no other playlist changed.",
            Playlist,
            updated={target.key: {"title": new}},
        ),
    )


def _playlist_id(name: str, title: str) -> str:
    """Return the line that finds a playlist's id among `playlists`."""
    return f'{name} = next(p["playlist_id"] for p in playlists if p["title"] == {quoted(title)})'


def _like(scene: Scene, songs: Sequence[Song]) -> list[Song]:
    """Add the supervisor's likes of songs, in random order; return the songs, each once."""
    liked = list({song.key: song for song in songs}.values())
    for song in scene.chance.sample(liked, len(liked)):
        scene.like(scene.me, song)
    return liked
