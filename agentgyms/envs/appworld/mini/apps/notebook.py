"""The notebook app: notes with tags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from agentgyms.envs.appworld.mini.api import PAGE, ApiError, App, Plain, Session, matches, page
from agentgyms.envs.appworld.mini.parameters import Flag, Integer, Tags, Text
from agentgyms.envs.appworld.mini.records import Note, NotebookAccount

NOTEBOOK: Final = App("notebook", "Keeps notes, with tags and pins.", NotebookAccount)

_NOTE_ID: Final = Integer("note_id", "Id of the note.")
_SUMMARY: Final = {
    "note_id": 1,
    "title": "string",
    "tags": ["string"],
    "pinned": False,
    "created_at": "2024-05-18T12:00:00",
    "updated_at": "2024-05-18T12:00:00",
}


@NOTEBOOK.api(
    "Show the account's name and email and how many notes it has.",
    returns={"first_name": "string", "last_name": "string", "email": "string", "note_count": 1},
)
def show_account(session: Session) -> Plain:
    """Return the account."""
    account = session.database.of(NotebookAccount)[session.me]
    names = ("first_name", "last_name", "email", "note_count")
    return account.reply(names, note_count=len(session.mine(Note)))


@NOTEBOOK.api(
    "List your notes, oldest first, without their content (show_note has it).",
    Text("query", "Words that the title or the content must have; any case.", default=""),
    Text("tag", "Only notes with this tag.", default=None, shortest=1, longest=50),
    Flag("pinned", "Only notes that are pinned (True) or are not (False).", default=None),
    *PAGE,
    returns=[_SUMMARY],
)
def search_notes(
    session: Session,
    query: str,
    tag: str | None,
    pinned: bool | None,
    page_index: int,
    page_limit: int,
) -> Plain:
    """Return a page of notes."""
    found = [
        note.reply(_SUMMARY, tags=list(note.tags))
        for note in session.mine(Note)
        if (tag is None or tag in note.tags)
        and (pinned is None or note.pinned is pinned)
        and matches(query, note.title, note.content)
    ]
    return page(found, page_index, page_limit)


@NOTEBOOK.api("Show one of your notes.", _NOTE_ID, returns={**_SUMMARY, "content": "string"})
def show_note(session: Session, note_id: int) -> Plain:
    """Return the note."""
    note = session.find_mine(Note, note_id, "note")
    return note.reply((*_SUMMARY, "content"), tags=list(note.tags))


@NOTEBOOK.api(
    "Create a note.",
    Text("title", "Title of the note.", shortest=1),
    Text("content", "Text of the note.", longest=4_000, trimmed=False),
    Tags("tags", "Tags of the note.", default=()),
    Flag("pinned", "Whether the note is pinned.", default=False),
    returns={"message": "string", "note_id": 1},
)
def create_note(
    session: Session, title: str, content: str, tags: tuple[str, ...], pinned: bool
) -> Plain:
    """Return the new note's id."""
    note = session.new(
        Note,
        account_id=session.me,
        title=title,
        content=content,
        tags=tags,
        pinned=pinned,
        created_at=session.now,
        updated_at=session.now,
    )
    return {"message": "The note was created.", "note_id": note.note_id}


@NOTEBOOK.api(
    "Change parts of one of your notes; what is not given stays as it is.",
    _NOTE_ID,
    Text("title", "New title.", default=None, shortest=1),
    Text("content", "New text.", default=None, longest=4_000, trimmed=False),
    Tags("tags", "New tags, all of them.", default=None),
    Flag("pinned", "Whether the note is pinned.", default=None),
    returns={"message": "string"},
)
def update_note(session: Session, note_id: int, **changes: Any) -> Plain:
    """Return a message."""
    note = session.find_mine(Note, note_id, "note")
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        raise ApiError(422, "Nothing to change: give title, content, tags or pinned.")
    session.database.replace(replace(note, updated_at=session.now, **given))
    return {"message": "The note was changed."}


@NOTEBOOK.api("Delete one of your notes.", _NOTE_ID, returns={"message": "string"})
def delete_note(session: Session, note_id: int) -> Plain:
    """Return a message."""
    session.database.remove(session.find_mine(Note, note_id, "note"))
    return {"message": "The note was deleted."}
