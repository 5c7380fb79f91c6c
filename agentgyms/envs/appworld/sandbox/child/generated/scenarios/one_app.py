"""Scenarios in a single app, of difficulty 1: a single change or fact."""

from __future__ import annotations

from ..music import PLAYLISTS
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
from ..writing import ALARMS, ERRANDS, PROJECT_NAMES, TAGS


@scenario("train", 1, ["simple_note"])
def note_tag(setting: Setting) -> Task:
    """Count the notes with a tag."""
    tag = setting.choose(TAGS)
    notes = [note for note in setting.own("simple_note.Note") if tag in note["tags"]]
    search = "pages(apis.simple_note.search_notes, access_token=simple_note_token)"
    return Task(
        f'How many of my SimpleNote notes have the tag "{tag}"?',
        [answered(True), scope()],
        [
            look_up("simple_note", "search_notes"),
            log_in("simple_note"),
            f"{PAGES}\nnotes = {search}",
            f'tagged = [note for note in notes if "{tag}" in note["tags"]]\nprint(len(tagged))',
            done("len(tagged)"),
        ],
        len(notes),
    )


@scenario("train", 1, ["simple_note"])
def note_delete(setting: Setting) -> Task:
    """Delete a note, whose title resembles others'."""
    note = setting.choose(setting.own("simple_note.Note"))
    title = note["title"]
    find = f'apis.simple_note.search_notes(access_token=simple_note_token, query="{title}")'
    return Task(
        f'Please delete my note titled "{title}" from SimpleNote.',
        [
            rows(
                "Exactly the named note is gone.",
                "simple_note.Note",
                "removed",
                [{"id": note["id"]}],
            ),
            answered(False),
            scope(removed=["simple_note.Note"]),
        ],
        [
            look_up("simple_note", "search_notes"),
            log_in("simple_note"),
            f"notes = {find}\nprint(notes)",
            f'note_id = [note["note_id"] for note in notes if note["title"] == "{title}"][0]',
            "apis.simple_note.delete_note(note_id=note_id, access_token=simple_note_token)",
            done(),
        ],
    )


@scenario("train", 1, ["phone"])
def alarm_off(setting: Setting) -> Task:
    """Switch off an alarm."""
    label = setting.choose(ALARMS)
    (alarm,) = setting.own("phone.Alarm", label=label)
    return Task(
        f'Switch off the alarm labelled "{label}" on my phone, but keep it.',
        [
            fields("Only the named alarm is off.", "phone.Alarm", "enabled", {alarm["id"]: False}),
            answered(False),
            scope(updated=["phone.Alarm"]),
        ],
        [
            look_up("phone", "update_alarm"),
            log_in("phone"),
            f"{PAGES}\nalarms = pages(apis.phone.show_alarms, access_token=phone_token)",
            f'alarm_id = [one["alarm_id"] for one in alarms if one["label"] == "{label}"][0]',
            "apis.phone.update_alarm(alarm_id=alarm_id, enabled=False, access_token=phone_token)",
            done(),
        ],
    )


@scenario("train", 1, ["spotify"])
def song_longest(setting: Setting) -> Task:
    """Name the longest song of a playlist."""
    (playlist,) = setting.own("spotify.Playlist", title=setting.choose(PLAYLISTS))
    links = setting.records.of("spotify.PlaylistSong", playlist_id=playlist["id"])
    songs = [setting.records.one("spotify.Song", id=link["song_id"]) for link in links]
    title = playlist["title"]
    return Task(
        f'What is the title of the longest song in my Spotify playlist "{title}"?',
        [answered(True), scope()],
        [
            look_up("spotify", "show_playlist_library"),
            log_in("spotify"),
            f"{PAGES}\nplaylists = pages("
            "apis.spotify.show_playlist_library, access_token=spotify_token)",
            f'playlist = [one for one in playlists if one["title"] == "{title}"][0]\n'
            'songs = [apis.spotify.show_song(song_id=number) for number in playlist["song_ids"]]',
            'longest = max(songs, key=lambda song: song["duration"])\nprint(longest["title"])',
            done('longest["title"]'),
        ],
        max(songs, key=lambda song: song["duration"])["title"],
    )


@scenario("dev", 1, ["todoist"])
def task_add(setting: Setting) -> Task:
    """Add a task to a project."""
    name = setting.choose(PROJECT_NAMES)
    (project,) = setting.own("todoist.Project", name=name)
    there = {row["title"] for row in setting.records.of("todoist.Task", project_id=project["id"])}
    title = setting.choose([errand for errand in ERRANDS if errand not in there])
    row = {"project_id": project["id"], "title": title, "priority": "low"}
    return Task(
        f'Add the task "{title}" with low priority to my Todoist project "{name}".',
        [
            rows("Exactly that task is new in the project.", "todoist.Task", "added", [row]),
            answered(False),
            scope(added=["todoist.Task"]),
        ],
        [
            look_up("todoist", "create_task"),
            log_in("todoist"),
            PROJECTS,
            f'project = [one for one in projects if one["name"] == "{name}"][0]',
            f'apis.todoist.create_task(project_id=project["project_id"], title="{title}", '
            'priority="low", access_token=todoist_token)',
            done(),
        ],
    )


@scenario("test_normal", 1, ["simple_note"])
def note_append(setting: Setting) -> Task:
    """Add a line to the end of a note."""
    title = setting.choose(("Saturday errands", "Sunday errands"))
    (note,) = setting.own("simple_note.Note", title=title)
    line = f"- {setting.choose([e for e in ERRANDS if e not in note['content']])}"
    return Task(
        f'Add the line "{line}" at the end of my SimpleNote note "{title}".',
        [
            fields(
                "The note ends with the new line, and is the same before it.",
                "simple_note.Note",
                "content",
                {note["id"]: f"{note['content']}\n{line}"},
            ),
            answered(False),
            scope(updated=["simple_note.Note"]),
        ],
        [
            look_up("simple_note", "update_note"),
            log_in("simple_note"),
            "notes = apis.simple_note.search_notes("
            f'query="{title}", access_token=simple_note_token)\n'
            f'note_id = [note["note_id"] for note in notes if note["title"] == "{title}"][0]',
            "note = apis.simple_note.show_note(note_id=note_id, access_token=simple_note_token)\n"
            'print(note["content"])',
            'apis.simple_note.update_note(note_id=note_id, content=note["content"] + '
            f'"\\n{line}", access_token=simple_note_token)',
            done(),
        ],
    )
