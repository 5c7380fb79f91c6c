"""Scenarios that process the lines of a note."""

from __future__ import annotations

from agentgyms.envs.appworld.mini import vocabulary
from agentgyms.envs.appworld.mini.records import Artist, Note, Playlist, Song, Todo
from agentgyms.envs.appworld.mini.solution_blocks import begin, finish, show_note_titled
from agentgyms.envs.appworld.mini.template import Change, Draw, Plan, plan, quoted, template


@template(difficulty=3)
def note_todos(draw: Draw) -> Plan:
    """Add the open lines of a note as to-dos, and delete the note."""
    scene, chance = draw.scene, draw.chance
    title = draw.choose("title", vocabulary.TARGET_TITLES)
    list_name = draw.choose("list", vocabulary.TARGET_LISTS)
    lines = chance.sample(vocabulary.TODOS, chance.between(6, 8))
    marks = [chance.pick(("-", "-", "x")) for _ in lines]
    marks[0], marks[1] = "-", "x"
    content = "\n".join(f"{mark} {line}" for mark, line in zip(marks, lines, strict=True))
    note = scene.note(scene.me, title, content)
    scene.note(scene.me, f"{title} (next year)", "- nothing yet")
    instruction = draw.wording(
        "Add the lines of my note '{title}' that begin with '-' as to-dos to my Planner list "
        "'{list_name}', without the mark; those with 'x' are done. Then delete the note.",
        "My note '{title}' is a list: lines marked 'x' are done, lines marked '-' are not. Make "
        "those that are not done to-dos of the list '{list_name}' in Planner, without the mark, "
        "and delete the note.",
    )
    return plan(
        instruction.format(title=title, list_name=list_name),
        [
            *begin(notebook="search_notes show_note delete_note", planner="add_todo"),
            show_note_titled(title),
            'for line in note["content"].splitlines():\n'
            '    if line.startswith("- "):\n'
            "        apis.planner.add_todo(access_token=planner_token, title=line[2:], "
            f"list_name={quoted(list_name)})\n"
            "apis.notebook.delete_note(access_token=notebook_token, note_id=note_id)",
            finish(),
        ],
        Change(
            "Each open line is a to-do of the list, and nothing else is new.",
            Todo,
            added=[
                {
                    "account_id": scene.account("planner", scene.me),
                    "title": line,
                    "list_name": list_name,
                    "done": False,
                }
                for mark, line in zip(marks, lines, strict=True)
                if mark == "-"
            ],
        ),
        Change("The note is deleted, no other.", Note, removed=[note.key]),
    )


@template(difficulty=3)
def song_list(draw: Draw) -> Plan:
    """Make a playlist of the songs in a note; other songs have some of the same titles."""
    scene, chance = draw.scene, draw.chance
    title = draw.choose("title", vocabulary.TARGET_TITLES)
    name = draw.choose("name", vocabulary.PLAYLISTS)
    songs = chance.sample(scene.of(Song), 6)
    artists = {artist.key: artist for artist in scene.of(Artist)}
    for song in songs[:3]:
        others = [artist for key, artist in artists.items() if key != song.artist_id]
        scene.song(song.title, chance.pick(others), song.genre)
    lines = [f"{song.title} by {artists[song.artist_id].name}" for song in songs]
    scene.note(scene.me, title, "\n".join(lines))
    scene.note(scene.me, f"{title} (rejected)", "Silent Bridge by Nobody")
    instruction = draw.wording(
        "Make a Jukebox playlist '{name}' of the songs that my note '{title}' lists.",
        "My note '{title}' lists songs with their artists. Put exactly these into a new Jukebox "
        "playlist with the title '{name}'.",
    )
    return plan(
        instruction.format(name=name, title=title),
        [
            *begin(
                notebook="search_notes show_note", jukebox="search_songs create_playlist add_song"
            ),
            show_note_titled(title),
            f"made = apis.jukebox.create_playlist(access_token=jukebox_token, "
            f"title={quoted(name)})\n"
            'for line in note["content"].splitlines():\n'
            '    song, artist = line.split(" by ")\n'
            "    songs = apis.jukebox.search_songs("
            "access_token=jukebox_token, query=song, artist=artist)\n"
            '    found = [s for s in songs if s["title"] == song]\n'
            "    apis.jukebox.add_song(access_token=jukebox_token, "
            'playlist_id=made["playlist_id"], song_id=found[0]["song_id"])\n'
            "print(made)",
            finish(),
        ],
        Change(
            "A playlist with the title has exactly the songs of the note.",
            Playlist,
            added=[
                {
                    "account_id": scene.account("jukebox", scene.me),
                    "title": name,
                    "song_ids": [song.key for song in songs],
                }
            ],
        ),
    )
