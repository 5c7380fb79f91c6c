"""Scenarios in a single app, of difficulty 2: several records at once."""

from __future__ import annotations

from collections import Counter

from ..music import GENRES
from ..people import NOW
from ..tasks import (
    PAGES,
    PROJECTS,
    Setting,
    Task,
    answered,
    done,
    fields,
    log_in,
    look_up,
    rows,
    scenario,
    scope,
)
from ..writing import PROJECT_NAMES


@scenario("train", 2, ["todoist"])
def urgent_done(setting: Setting) -> Task:
    """Complete a project's open tasks of high priority."""
    name = setting.choose(PROJECT_NAMES)
    (project,) = setting.own("todoist.Project", name=name)
    tasks = setting.records.of("todoist.Task", project_id=project["id"], priority="high")
    open_tasks = {task["id"]: True for task in tasks if not task["is_completed"]}
    return Task(
        f'I have done everything of high priority in my Todoist project "{name}". Mark those '
        "tasks as completed.",
        [
            fields(
                "Exactly the open tasks of high priority in the project are completed.",
                "todoist.Task",
                "is_completed",
                open_tasks,
            ),
            answered(False),
            scope(updated=["todoist.Task"]),
        ],
        [
            look_up("todoist", "show_tasks"),
            log_in("todoist"),
            PROJECTS,
            f'project = [one for one in projects if one["name"] == "{name}"][0]\n'
            'found = apis.todoist.show_tasks(project_id=project["project_id"], priority="high", '
            "is_completed=False, access_token=todoist_token)\nprint(found)",
            'tasks = found["no_section_tasks"]\n'
            'for section in found["sections"]:\n'
            '    tasks += section["tasks"]',
            "for task in tasks:\n"
            '    apis.todoist.update_task(task_id=task["task_id"], is_completed=True, '
            "access_token=todoist_token)",
            done(),
        ],
    )


@scenario("train", 2, ["spotify"])
def genre_playlist(setting: Setting) -> Task:
    """Make a playlist of the library's songs of a genre."""
    genre = setting.choose(GENRES)
    title = f"{genre.title()} {setting.choose(('Corner', 'Hour', 'Shelf'))}"
    library = {row["song_id"] for row in setting.own("spotify.UserLibrarySong")}
    songs = setting.records.of("spotify.Song", genre=genre)
    playlist = {"user_id": setting.person.id, "title": title}
    added = [{"playlist.title": title, "song_id": s["id"]} for s in songs if s["id"] in library]
    return Task(
        f'Make a Spotify playlist titled "{title}" with all the {genre} songs of my song library.',
        [
            rows("One playlist of that title is new.", "spotify.Playlist", "added", [playlist]),
            rows(
                "It has exactly the library's songs of the genre.",
                "spotify.PlaylistSong",
                "added",
                added,
            ),
            answered(False),
            scope(added=["spotify.Playlist", "spotify.PlaylistSong"]),
        ],
        [
            look_up("spotify", "show_song_library"),
            log_in("spotify"),
            f"{PAGES}\nlibrary = pages(apis.spotify.show_song_library, access_token=spotify_token)",
            'owned = {song["song_id"] for song in library}\n'
            f'songs = pages(apis.spotify.search_songs, genre="{genre}")\n'
            'chosen = [song for song in songs if song["song_id"] in owned]\nprint(len(chosen))',
            "playlist = apis.spotify.create_playlist("
            f'title="{title}", access_token=spotify_token)\n'
            "for song in chosen:\n"
            '    apis.spotify.add_song_to_playlist(playlist_id=playlist["playlist_id"], '
            'song_id=song["song_id"], access_token=spotify_token)',
            done(),
        ],
    )


@scenario("train", 2, ["venmo"])
def money_sent(setting: Setting) -> Task:
    """Add up what was sent to someone since a day."""
    sent = setting.records.of("venmo.Transaction", sender_id=setting.person.id)
    (receiver, _), *_ = Counter(row["receiver_id"] for row in sent).most_common(1)
    other = setting.people[receiver - 1]
    since = setting.choose(("2022-06-01", "2022-07-01", "2022-08-01"))
    amounts = [
        row["amount"]
        for row in sent
        if row["receiver_id"] == other.id and row["created_at"].isoformat() >= since
    ]
    return Task(
        f"How much money have I sent to {other.name} on Venmo since {since} (that day included), "
        "in dollars?",
        [answered(True), scope()],
        [
            look_up("venmo", "show_transactions"),
            log_in("venmo"),
            f'{PAGES}\nsent = pages(apis.venmo.show_transactions, direction="sent", '
            f'min_created_at="{since}", access_token=venmo_token)',
            'amounts = [one["amount"] for one in sent '
            f'if one["receiver"]["name"] == "{other.name}"]\nprint(amounts)',
            done("round(sum(amounts), 2)"),
        ],
        round(sum(amounts), 2),
    )


@scenario("test_normal", 2, ["spotify"])
def library_trim(setting: Setting) -> Task:
    """Remove the rarely played songs from the library."""
    owned = {row["song_id"]: row for row in setting.own("spotify.UserLibrarySong")}
    songs = [song for song in setting.records.of("spotify.Song") if song["id"] in owned]
    limit = setting.choose(range(300, 500, 10))
    removed = [{"id": owned[s["id"]]["id"]} for s in songs if s["play_count"] < limit]
    return Task(
        f"Remove all songs that have been played fewer than {limit} times from my Spotify song "
        "library.",
        [
            rows(
                "Exactly the songs played less often are gone from the library.",
                "spotify.UserLibrarySong",
                "removed",
                removed,
            ),
            answered(False),
            scope(removed=["spotify.UserLibrarySong"]),
        ],
        [
            look_up("spotify", "show_song_library"),
            log_in("spotify"),
            f"{PAGES}\nlibrary = pages(apis.spotify.show_song_library, access_token=spotify_token)",
            'owned = {song["song_id"] for song in library}\n'
            f"songs = pages(apis.spotify.search_songs, max_play_count={limit})\n"
            'rare = [song["song_id"] for song in songs '
            f'if song["song_id"] in owned and song["play_count"] < {limit}]',
            "for song_id in rare:\n"
            "    apis.spotify.remove_song_from_library("
            "song_id=song_id, access_token=spotify_token)",
            done(),
        ],
    )


@scenario("test_normal", 2, ["venmo"])
def top_receiver(setting: Setting) -> Task:
    """Name who got the most money in the last days."""
    days = setting.choose((300, 350, 400))
    first = NOW.toordinal() - days
    totals: Counter[int] = Counter()
    for row in setting.records.of("venmo.Transaction", sender_id=setting.person.id):
        if row["created_at"].toordinal() >= first:
            totals[row["receiver_id"]] += round(row["amount"] * 100)
    since = NOW.fromordinal(first).date().isoformat()
    return Task(
        f"To whom have I sent the most money in total on Venmo since {since} (that day included)? "
        "Answer with the email address.",
        [answered(True), scope()],
        [
            look_up("venmo", "show_transactions"),
            log_in("venmo"),
            f'{PAGES}\nsent = pages(apis.venmo.show_transactions, direction="sent", '
            f'min_created_at="{since}", access_token=venmo_token)',
            "totals = {}\n"
            "for one in sent:\n"
            '    email = one["receiver"]["email"]\n'
            '    totals[email] = totals.get(email, 0) + one["amount"]\n'
            "print(totals)",
            done("max(totals, key=totals.get)"),
        ],
        setting.people[max(totals, key=lambda number: totals[number]) - 1].email,
    )
