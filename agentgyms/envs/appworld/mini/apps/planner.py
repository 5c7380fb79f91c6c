"""The planner app: a calendar and to-dos."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from agentgyms.envs.appworld.mini.api import PAGE, ApiError, App, Plain, Session, page
from agentgyms.envs.appworld.mini.parameters import Day, Flag, Integer, Moment, Text
from agentgyms.envs.appworld.mini.records import DEFAULT_LIST, Event, PlannerAccount, Todo

PLANNER: Final = App("planner", "Has a calendar of events and lists of to-dos.", PlannerAccount)

_EVENT_ID: Final = Integer("event_id", "Id of the event.")
_TODO_ID: Final = Integer("todo_id", "Id of the to-do.")
_MESSAGE: Final = {"message": "string"}
_EVENT: Final = {
    "event_id": 1,
    "title": "string",
    "starts_at": "2024-05-18T12:00:00",
    "ends_at": "2024-05-18T13:00:00",
    "place": "string",
}
_TODO: Final = {
    "todo_id": 1,
    "title": "string",
    "list_name": "string",
    "due_on": "2024-05-18",
    "done": False,
}


@PLANNER.api(
    "List events of your calendar, earliest start first.",
    Day("from_date", "Only events that start on this day or later.", default=None),
    Day("to_date", "Only events that start on this day or earlier.", default=None),
    *PAGE,
    returns=[_EVENT],
)
def show_events(
    session: Session, from_date: str | None, to_date: str | None, page_index: int, page_limit: int
) -> Plain:
    """Return a page of events."""
    found = [
        event
        for event in session.mine(Event)
        if (from_date is None or from_date <= event.starts_at[:10])
        and (to_date is None or event.starts_at[:10] <= to_date)
    ]
    found.sort(key=lambda event: (event.starts_at, event.event_id))
    return [event.reply(_EVENT) for event in page(found, page_index, page_limit)]


@PLANNER.api(
    "Create an event in your calendar.",
    Text("title", "Title of the event.", shortest=1),
    Moment("starts_at", "When it starts."),
    Moment("ends_at", "When it ends; not before it starts."),
    Text("place", "Where it is.", default=""),
    returns={"message": "string", "event_id": 1},
)
def create_event(session: Session, title: str, starts_at: str, ends_at: str, place: str) -> Plain:
    """Return the new event's id."""
    _check_times(starts_at, ends_at)
    event = session.new(
        Event,
        account_id=session.me,
        title=title,
        starts_at=starts_at,
        ends_at=ends_at,
        place=place,
    )
    return {"message": "The event was created.", "event_id": event.event_id}


@PLANNER.api(
    "Change parts of an event of your calendar; what is not given stays as it is.",
    _EVENT_ID,
    Text("title", "New title.", default=None, shortest=1),
    Moment("starts_at", "New start.", default=None),
    Moment("ends_at", "New end; not before the start.", default=None),
    Text("place", "New place.", default=None),
    returns=_MESSAGE,
)
def update_event(session: Session, event_id: int, **changes: Any) -> Plain:
    """Return a message."""
    event = session.find_mine(Event, event_id, "event")
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        raise ApiError(422, "Nothing to change: give title, starts_at, ends_at or place.")
    changed = replace(event, **given)
    _check_times(changed.starts_at, changed.ends_at)
    session.database.replace(changed)
    return {"message": "The event was changed."}


@PLANNER.api("Delete an event of your calendar.", _EVENT_ID, returns=_MESSAGE)
def delete_event(session: Session, event_id: int) -> Plain:
    """Return a message."""
    session.database.remove(session.find_mine(Event, event_id, "event"))
    return {"message": "The event was deleted."}


@PLANNER.api(
    "List your to-dos, oldest first; due_on is None for those without a day.",
    Text("list_name", "Only to-dos of the list with this name.", default=None),
    Flag("done", "Only to-dos that are done (True) or are not (False).", default=None),
    *PAGE,
    returns=[_TODO],
)
def show_todos(
    session: Session, list_name: str | None, done: bool | None, page_index: int, page_limit: int
) -> Plain:
    """Return a page of to-dos."""
    found = [
        todo
        for todo in session.mine(Todo)
        if (list_name is None or todo.list_name == list_name)
        and (done is None or todo.done is done)
    ]
    return [todo.reply(_TODO) for todo in page(found, page_index, page_limit)]


@PLANNER.api(
    "Add a to-do.",
    Text("title", "What there is to do.", shortest=1),
    Text("list_name", "Name of the list to put it in.", default=DEFAULT_LIST, shortest=1),
    Day("due_on", "Day by which it shall be done.", default=None),
    returns={"message": "string", "todo_id": 1},
)
def add_todo(session: Session, title: str, list_name: str, due_on: str | None) -> Plain:
    """Return the new to-do's id."""
    todo = session.new(Todo, account_id=session.me, title=title, list_name=list_name, due_on=due_on)
    return {"message": "The to-do was added.", "todo_id": todo.todo_id}


@PLANNER.api("Mark one of your to-dos as done.", _TODO_ID, returns=_MESSAGE)
def complete_todo(session: Session, todo_id: int) -> Plain:
    """Return a message."""
    todo = session.find_mine(Todo, todo_id, "to-do")
    if todo.done:
        raise ApiError(409, f"The to-do with todo_id {todo_id} is done already.")
    session.database.replace(replace(todo, done=True))
    return {"message": "The to-do is done."}


@PLANNER.api("Delete one of your to-dos.", _TODO_ID, returns=_MESSAGE)
def delete_todo(session: Session, todo_id: int) -> Plain:
    """Return a message."""
    session.database.remove(session.find_mine(Todo, todo_id, "to-do"))
    return {"message": "The to-do was deleted."}


def _check_times(starts_at: str, ends_at: str) -> None:
    if ends_at < starts_at:
        raise ApiError(422, f"ends_at must not be before starts_at: {ends_at} < {starts_at}.")
