"""Requirements of tasks of MiniAppWorld, on worlds before and after."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.envs.appworld.mini.database import Database
from agentgyms.envs.appworld.mini.records import Like, Note, Payment, Song
from agentgyms.envs.appworld.mini.tracker import (
    NOT_GIVEN,
    answer_is,
    no_op_fail,
    no_op_pass,
    only_changed,
    others_unchanged,
    same_answer,
)
from tests.agentgyms.envs.appworld.small_town import DATABASE, NOW, ask, value, world


def test_a_world_that_is_left_alone_passes_what_is_labelled_so() -> None:
    checks = [
        answer_is(None),
        answer_is(NOT_GIVEN),
        only_changed(),
        only_changed(Note),
        others_unchanged(Note, Payment),
        no_op_fail("The note is gone.", lambda o: bool(o.changed_records(Note).removed)),
        no_op_pass("No payment is gone.", lambda o: not o.changed_records(Payment).removed),
        no_op_fail("A song is added.", lambda o: o.changed_records(Song).added[0].song_id == 31),
    ]
    report = world(checks).report()
    assert [verdict.passed for verdict in report.verdicts] == [
        verdict.label == "no_op_pass" for verdict in report.verdicts
    ]
    assert not report.success
    assert report.score == 3 / 8
    assert report.score_over_no_op == 0


def test_a_done_task_passes_and_collateral_damage_fails() -> None:
    checks = [
        answer_is(None),
        only_changed(Note),
        no_op_fail(
            "Note 1 is gone.",
            lambda o: [note.note_id for note in o.changed_records(Note).removed] == [1],
        ),
    ]
    town = world(checks)
    value(ask(town, "notebook", "delete_note", note_id=1))
    assert not town.report().success
    value(ask(town, "supervisor", "complete_task"))
    assert town.report().success
    value(ask(town, "jukebox", "like_song", song_id=1))
    assert [verdict.passed for verdict in town.report().verdicts] == [True, False, True]
    value(ask(town, "jukebox", "unlike_song", song_id=1))
    assert town.report().success
    value(ask(town, "supervisor", "complete_task", status="fail"))
    assert [verdict.passed for verdict in town.report().verdicts] == [False, True, True]


def test_changes_are_what_differs_not_what_was_done() -> None:
    town = world()
    value(ask(town, "notebook", "create_note", title="New", content=""))
    value(ask(town, "notebook", "update_note", note_id=1, title="Lights"))
    value(ask(town, "notebook", "delete_note", note_id=2))
    changes = town.outcome.changed_records(Note)
    assert [note.title for note in changes.added] == ["New"]
    assert changes.added[0].created_at == NOW
    assert [(note.note_id, note.title) for note in changes.updated] == [(1, "Lights")]
    assert [note.title for note in changes.removed] == ["Trip"]
    assert town.outcome.changed_tables() == {"notebook.Note"}
    assert town.outcome.changed_tables(ignore=["notebook.Note"]) == set()
    value(ask(town, "supervisor", "complete_task"))
    assert town.outcome.changed_tables() == {"notebook.Note"}


def test_requirements_name_what_must_have_changed() -> None:
    assert answer_is(None).requirement == "The task is completed without an answer."
    assert answer_is(0).requirement == "The task is completed with the right answer."
    assert only_changed().requirement == "Nothing changed."
    assert (
        only_changed(Payment, Note).requirement
        == "Of all tables notebook.Note and purse.Payment changed, no other."
    )


@pytest.mark.parametrize(
    ("made", "name"),
    [(answer_is(1), "label"), (world().outcome, "after"), (world()._task, "database")],
)
def test_tasks_checks_and_outcomes_cannot_be_changed(made: Any, name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(made, name, None)


def test_ids_begin_at_1_and_digests_have_16_bytes() -> None:
    empty = Database([])
    assert empty.next_id(Note) == 1
    assert len(bytes.fromhex(empty.digest())) == 16
    assert world().digest() == "4ef9cbea692e9777a3fae36e1b770c3b"
    assert world().alive


@pytest.mark.parametrize("length", [200, 201])
def test_errors_name_at_most_200_characters_of_an_unknown_app_or_api(length: int) -> None:
    for app, api in (("x" * length, "login"), ("notebook", "x" * length)):
        reply = world().call(app, api, {})
        assert reply.status == 0
        assert ("x" * length in reply.error) == (length <= 200)


@pytest.mark.parametrize(
    ("given_answer", "expected"),
    [
        (3, "3"),
        (3.0, 3),
        ("3.00", 3),
        (2.504, 2.5),
        (" Ann LEE ", "ann lee"),
        ('"Ann"', "Ann"),
        ("1e3", 1000),
        ([2, "B"], ["b", 2.0]),
        (None, None),
        (None, "null"),
        ("infinity", "Infinity"),
        ("''", ""),
    ],
)
def test_answers_that_mean_the_same(given_answer: Any, expected: Any) -> None:
    assert same_answer(given_answer, expected)
    assert same_answer(expected, given_answer)


@pytest.mark.parametrize(
    ("given_answer", "expected"),
    [
        (3, 4),
        (2.51, 2.5),
        ("Ann", "Ann Lee"),
        ([1, 1], [1]),
        (None, 0),
        (NOT_GIVEN, None),
        ("", None),
        ("3 songs", 3),
        ("'", ""),
        ("'tis", "ti"),
    ],
)
def test_answers_that_differ(given_answer: Any, expected: Any) -> None:
    assert not same_answer(given_answer, expected)
    assert not same_answer(expected, given_answer)


@given(
    st.lists(st.integers() | st.text(), max_size=5).flatmap(
        lambda items: st.tuples(st.just(items), st.permutations(items))
    )
)
def test_the_order_of_a_list_does_not_matter(lists: tuple[list[Any], list[Any]]) -> None:
    assert same_answer(*lists)


def test_copies_change_independently_and_share_nothing_that_changes() -> None:
    copied = DATABASE.copy()
    note = copied.of(Note)[1]
    copied.replace(replace(note, title="Lights"))
    assert DATABASE.of(Note)[1] is note
    assert copied.digest() != DATABASE.digest()
    copied.replace(note)
    assert copied.digest() == DATABASE.digest()
    copied.remove(note)
    assert 1 in DATABASE.of(Note)
    assert copied.digest() != DATABASE.digest()


def test_ids_of_new_records_depend_on_the_records_alone() -> None:
    copied = DATABASE.copy()
    like = Like(like_id=copied.next_id(Like), account_id=1, song_id=1, liked_at=NOW)
    assert like.like_id == 4
    copied.add(like)
    copied.remove(like)
    assert copied.digest() == DATABASE.digest()
    assert copied.next_id(Like) == 4


def test_records_must_come_in_the_order_of_their_ids() -> None:
    like = Like(like_id=2, account_id=1, song_id=1, liked_at=NOW)
    database = Database([like])
    for wrong in (2, 1, 0):
        with pytest.raises(
            ValueError, match=r"jukebox.Like \d is not a new id: expected at least 3"
        ):
            database.add(replace(like, like_id=wrong))
    with pytest.raises(KeyError):
        database.replace(replace(like, like_id=3))
    with pytest.raises(KeyError):
        database.remove(replace(like, like_id=3))
