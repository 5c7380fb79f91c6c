"""What the apps of MiniAppWorld answer, to calls that are right and to calls that are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgyms.envs.appworld.mini.api import MAX_RECORDS
from agentgyms.envs.appworld.mini.apps import API_NAMES, APPS
from agentgyms.envs.appworld.mini.database import Database
from agentgyms.envs.appworld.mini.records import (
    ACCOUNTS,
    KINDS,
    Balance,
    Note,
    Payment,
    Record,
    Request,
    Task,
    Todo,
    TopUp,
)
from tests.agentgyms.envs.appworld.mini_calls import BAD, GOOD
from tests.agentgyms.envs.appworld.small_town import (
    ADA,
    BEN,
    CYD,
    DATABASE,
    ask,
    log_in,
    password,
    value,
    world,
)

CALLS = sorted(GOOD)
NAMES = [f"{app}.{api}" for app, api in CALLS]
TOKENED = [(app, api) for app, api in CALLS if app in ACCOUNTS and api != "login"]
CHANGING = {
    *{"create_note", "update_note", "delete_note"},
    *{"send_payment", "create_request", "approve_request", "decline_request", "top_up"},
    *{"create_playlist", "rename_playlist", "delete_playlist", "add_song", "remove_song"},
    *{"like_song", "unlike_song", "add_contact", "update_contact", "delete_contact"},
    *{"create_event", "update_event", "delete_event", "add_todo", "complete_todo", "delete_todo"},
    "complete_task",
}


def test_every_api_has_a_good_call() -> None:
    assert set(GOOD) == {(app, api) for app, apis in API_NAMES.items() for api in apis}


@pytest.mark.parametrize(("app", "api"), CALLS, ids=NAMES)
def test_a_good_call_returns_what_the_documentation_says_and_changes_what_it_should(
    app: str, api: str
) -> None:
    town = world()
    returned = value(ask(town, app, api, **GOOD[app, api]))
    _assert_shaped_like(returned, APPS[app].apis[api].returns, api)
    assert json.loads(json.dumps(returned)) == returned
    assert (town.digest() != DATABASE.digest()) == (api in CHANGING)


def _assert_shaped_like(returned: Any, example: Any, where: str) -> None:
    if isinstance(example, dict) and example:
        assert list(returned) == list(example), where
        for name in example:
            _assert_shaped_like(returned[name], example[name], f"{where}.{name}")
    elif isinstance(example, list):
        assert isinstance(returned, list), where
        # An empty list would show nothing.
        assert returned or where.endswith((".parameters", ".constraints")), where
        for item in returned:
            _assert_shaped_like(item, example[0], where)
    elif isinstance(example, (bool, int, float, str)):
        assert type(returned) is type(example) or returned is None, where


@pytest.mark.parametrize(("app", "api", "arguments", "status", "part"), BAD)
def test_a_bad_call_is_answered_with_its_fault(
    app: str, api: str, arguments: dict[str, Any], status: int, part: str
) -> None:
    town = world()
    reply = ask(town, app, api, **arguments)
    assert reply.status == status, reply.error
    first, body = reply.error.split("\n")
    assert first == f"Response status code is {status}:"
    assert part in json.loads(body)["message"]
    assert reply.kind == "Exception"
    assert reply.value is None
    assert town.digest() == DATABASE.digest()


def test_the_body_of_an_error_is_compact_json() -> None:
    reply = ask(world(), "notebook", "show_note", note_id=3)
    message = '{"message":"You have no note with note_id 3."}'
    assert reply.error == f"Response status code is 404:\n{message}"


@pytest.mark.parametrize(
    ("app", "api", "error"),
    [
        ("mail", "login", "No app named 'mail' found."),
        ("__class__", "x", "No app named '__class__' found."),
        ("purse", "rob", "No API named 'rob' found in the purse app."),
        ("supervisor", "login", "No API named 'login' found in the supervisor app."),
    ],
)
def test_unknown_apps_and_apis_never_become_requests(app: str, api: str, error: str) -> None:
    reply = world().call(app, api, {})
    assert (reply.error, reply.kind, reply.status) == (error, "Exception", 0)


@pytest.mark.parametrize(("app", "api"), TOKENED, ids=[f"{a}.{b}" for a, b in TOKENED])
def test_tokens_are_asked_for(app: str, api: str) -> None:
    town = world()
    for_another = log_in(town, "purse" if app != "purse" else "notebook")
    for token in ({}, *({"access_token": each} for each in (for_another, "", "x", None, 7, []))):
        reply = town.call(app, api, {**GOOD[app, api], **token})
        assert reply.status == 401, reply
        assert f"apis.{app}.login(" in reply.error
    assert town.digest() == DATABASE.digest()


def test_tokens_are_the_same_for_the_same_account_of_a_world_and_differ_else() -> None:
    town, again = world(), world()
    tokens = {
        (app, person["email"]): log_in(town, app, person)
        for app in ACCOUNTS
        for person in (ADA, BEN, CYD)
    }
    assert len(set(tokens.values())) == len(tokens) == 15
    assert log_in(again, "purse", BEN) == tokens["purse", BEN["email"]]
    assert town.digest() == DATABASE.digest()


def test_login_takes_the_email_in_any_case() -> None:
    secrets = {"username": " Ada@Mail.TEST", "password": password(ADA, "purse")}
    assert value(world().call("purse", "login", secrets))["token_type"] == "Bearer"


@pytest.mark.parametrize(
    ("app", "api", "arguments", "key", "count"),
    [
        ("notebook", "search_notes", {}, "note_id", 32),
        ("jukebox", "search_songs", {}, "song_id", 30),
        ("purse", "show_payments", {}, "payment_id", 2),
        ("purse", "search_people", {}, "email", 2),
        ("purse", "show_requests", {"status": "all"}, "request_id", 3),
        ("jukebox", "show_playlists", {}, "playlist_id", 2),
        ("jukebox", "show_liked_songs", {}, "song_id", 2),
        ("rolodex", "search_contacts", {}, "contact_id", 2),
        ("planner", "show_events", {}, "event_id", 2),
        ("planner", "show_todos", {}, "todo_id", 2),
    ],
)
@pytest.mark.parametrize("limit", [1, 5, 20])
def test_pages_have_everything_once(
    app: str, api: str, arguments: dict[str, Any], key: str, count: int, limit: int
) -> None:
    town = world()
    found: list[Any] = []
    for index in range(count + 1):
        rows = value(ask(town, app, api, page_index=index, page_limit=limit, **arguments))
        assert len(rows) == min(limit, max(0, count - limit * index))
        found += [row[key] for row in rows]
    assert len(set(found)) == len(found) == count


def test_pages_have_five_results_if_nothing_else_is_said() -> None:
    assert len(value(ask(world(), "notebook", "search_notes"))) == 5


def test_searches_filter_by_all_that_is_given() -> None:
    town = world()

    def titles(**arguments: Any) -> list[str]:
        return [n["title"] for n in value(ask(town, "notebook", "search_notes", **arguments))]

    assert titles(query="LAMP") == ["Lamps", "Trip"]
    assert titles(query="rope lamp") == ["Trip"]
    assert titles(tag="home", pinned=False) == ["Trip"]
    assert titles(tag="hom") == []
    songs = value(ask(town, "jukebox", "search_songs", artist="the kettles", genre="jazz"))
    assert [song["song_id"] for song in songs] == [6, 12, 18, 24, 30]
    assert value(ask(town, "jukebox", "search_songs", artist="kettles")) == []
    events = value(ask(town, "planner", "show_events", to_date="2024-05-19"))
    assert [event["title"] for event in events] == ["Lunch"]


def test_money_moves_and_is_never_made() -> None:
    town = world()
    value(ask(town, "purse", "send_payment", receiver_email=BEN["email"], amount=0.1 + 0.2))
    value(ask(town, "purse", "approve_request", request_id=1))
    assert value(ask(town, "purse", "show_balance")) == {"balance": 59.7}
    assert value(ask(town, "purse", "show_balance", BEN)) == {"balance": 60.8}
    assert town.outcome.after.of(Request)[1].status == "approved"
    assert [payment.cents for payment in town.outcome.after.of(Payment).values()][3:] == [30, 4000]
    assert value(ask(town, "purse", "top_up", card_id=1, amount=1))["balance"] == 60.7


def test_what_others_keep_is_seen_by_them_alone() -> None:
    town = world()
    seen: list[Any] = []
    for app, api in TOKENED:
        if api not in CHANGING:
            paged = "page_limit" in APPS[app].apis[api].by_name
            arguments = {"page_limit": 20} if paged else GOOD[app, api]
            seen.append(value(ask(town, app, api, **arguments)))
    text = json.dumps(seen)
    assert "Ben's" not in text
    assert "Secret" not in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("app", "api", "kind"),
    [
        ("notebook", "create_note", Note),
        ("purse", "send_payment", Payment),
        ("purse", "top_up", TopUp),
        ("planner", "add_todo", Todo),
    ],
)
def test_no_code_can_fill_the_memory(app: str, api: str, kind: type[Record]) -> None:
    town = world()
    arguments = {**GOOD[app, api], "access_token": log_in(town, app)}
    if "amount" in arguments:
        arguments["amount"] = 0.01
    while not (reply := town.call(app, api, arguments)).error:
        before = town.digest() if len(town.outcome.after.of(kind)) == MAX_RECORDS else ""
    assert reply.status == 409
    assert "there are 1000 records" in reply.error
    assert town.digest() == before


def test_a_second_completion_overwrites_the_first_and_the_world_goes_on() -> None:
    town = world()
    assert not town.completed
    value(ask(town, "supervisor", "complete_task", status="fail", answer="Ann"))
    assert town.completed
    shown = value(ask(town, "supervisor", "show_active_task"))
    assert (shown["status"], shown["answer"]) == ("fail", "Ann")
    value(ask(town, "notebook", "delete_note", note_id=1))
    value(ask(town, "supervisor", "complete_task"))
    assert town.outcome.after.of(Task)[1].status == "success"
    assert value(ask(town, "supervisor", "show_active_task"))["answer"] is None


def test_values_are_the_callers_own() -> None:
    town = world()
    for app, api in CALLS:
        first = value(ask(town, app, api, **GOOD[app, api])) if api not in CHANGING else None
        if isinstance(first, list):
            first.clear()
        elif isinstance(first, dict):
            for part in list(first.values()):
                if isinstance(part, (dict, list)):
                    part.clear()
            first.clear()
    fresh = world()
    for app, api in CALLS:
        if api not in CHANGING:
            again = value(ask(town, app, api, **GOOD[app, api]))
            assert again == value(ask(fresh, app, api, **GOOD[app, api]))
            assert again


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from([10**4000, "x" * 20_000, "\ud800", "2024-05-18", "a@b.c", 5.0, -0.0, 1e308]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@st.composite
def wrong_calls(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    """Return a good call with some of its arguments left out, replaced or added."""
    app, api = draw(st.sampled_from(CALLS))
    arguments = dict(GOOD[app, api])
    names = [*APPS[app].apis[api].by_name, "x", "session", "self", ""]
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)):
        if draw(st.integers(0, 3)) == 0:
            arguments.pop(name, None)
        else:
            arguments[name] = draw(PLAIN)
    return app, api, arguments


@settings(max_examples=150, deadline=None)
@given(st.lists(wrong_calls(), min_size=1, max_size=2))
def test_whatever_is_given_is_answered_and_an_error_changes_nothing(
    calls: list[tuple[str, str, dict[str, Any]]],
) -> None:
    town = world()
    for app, api, arguments in calls:
        before = town.digest()
        if app in ACCOUNTS and api != "login":
            arguments = {"access_token": log_in(town, app), **arguments}
        reply = town.call(app, api, arguments)
        if reply.error:
            assert reply.status in (401, 404, 409, 422)
            assert json.loads(reply.error.split("\n", 1)[1])["message"]
            assert town.digest() == before
        else:
            json.dumps(reply.value, allow_nan=False)
            assert town.digest() == before or api in CHANGING
    assert all(balance.cents >= 0 for balance in town.outcome.after.of(Balance).values())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(CALLS), st.sampled_from([ADA, BEN])), max_size=12))
def test_the_digest_is_that_of_the_records(calls: list[tuple[tuple[str, str], Any]]) -> None:
    town = world()
    for (app, api), person in calls:
        ask(town, app, api, person, **GOOD[app, api])
        after = town.outcome.after
        records = [record for kind in KINDS for record in after.of(kind).values()]
        assert Database(records).digest() == town.digest()
        changed = town.outcome.changed_tables() or after.of(Task) != DATABASE.of(Task)
        assert (town.digest() != DATABASE.digest()) == bool(changed)
