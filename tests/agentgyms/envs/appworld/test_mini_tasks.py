"""The tasks of MiniAppWorld: their splits, that ids alone make them, and what they require."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import combinations

import pytest

from agentgyms.core.errors import UnknownSplit, UnknownTask
from agentgyms.core.randomness import Chance
from agentgyms.envs.appworld.mini.database import Database
from agentgyms.envs.appworld.mini.generator import COUNTS, MiniTasks, make_task, scenarios, task_ids
from agentgyms.envs.appworld.mini.people import Cast, draw_cast
from agentgyms.envs.appworld.mini.records import Account, Note, PurseAccount, Record
from agentgyms.envs.appworld.mini.scenarios import CHALLENGE, COMMON
from agentgyms.envs.appworld.mini.template import Change
from agentgyms.envs.appworld.mini.tracker import Outcome
from tests.agentgyms.envs.appworld.mini_play import made, opened

TASKS = MiniTasks()
SPREAD = [f"{each.name}-t002_{1 + n % 3}" for n, each in enumerate(COMMON)] + [
    f"{each.name}-c001_{1 + n % 3}" for n, each in enumerate(CHALLENGE)
]
"""A task of each template."""

_DIGESTS = """
import sys
from agentgyms.envs.appworld.mini.generator import MiniTasks
tasks = MiniTasks()
for task_id in sys.argv[1:]:
    world = tasks.open(task_id)
    print(world.brief, world.digest(), tasks.solution(task_id), world.report())
"""


def _digests(seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", _DIGESTS, *SPREAD[::3]],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize(("split", "count"), COUNTS.items())
def test_a_split_has_three_tasks_of_each_scenario_and_difficulties_in_even_shares(
    split: str, count: int
) -> None:
    families = TASKS.families(split)
    assert len(families) == 3 * count
    scenario_names = [name for name, _ in scenarios(split)]
    assert list(families) == [task for name in scenario_names for task in task_ids(name)]
    assert all(task_id.count("_") == 1 for task_id in families)
    levels = Counter(families.values())
    assert set(levels) == {1, 2, 3}
    assert max(levels.values()) - min(levels.values()) <= 3
    assert {opened(task_id).brief.difficulty for task_id in list(families)[::3]} == {1, 2, 3}


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(UnknownSplit, match="'test'.*test_normal"):
        TASKS.families("test")


def test_planner_and_new_templates_are_in_test_challenge_alone() -> None:
    names = {split: {template.name for _, template in scenarios(split)} for split in COUNTS}
    assert names["dev"] == names["test_normal"] == names["train"]
    assert not names["train"] & names["test_challenge"]
    assert len(names["train"]) == 18
    with_planner: Counter[str] = Counter()
    for split in ("train", "test_challenge"):
        firsts = {each.name: name for name, each in reversed(scenarios(split))}
        for name in firsts.values():
            with_planner[split] += "apis.planner" in "\n".join(made(f"{name}_1").solution)
    assert with_planner["train"] == 0
    assert with_planner["test_challenge"] >= 5


def test_about_half_of_the_tasks_ask_for_an_answer() -> None:
    asking = [
        task_id
        for task_id in TASKS.families("train")
        if "with the right answer" in opened(task_id).report().verdicts[0].requirement
    ]
    assert 0.4 < len(asking) / 180 < 0.6


def test_no_two_tasks_are_equal_and_no_split_shares_a_supervisor() -> None:
    briefs = {split: [opened(i).brief for i in TASKS.families(split)] for split in COUNTS}
    everything = [
        (brief.instruction, brief.supervisor["email"], brief.now)
        for split in COUNTS
        for brief in briefs[split]
    ]
    assert len(set(everything)) == len(everything)
    emails = {split: {brief.supervisor["email"] for brief in briefs[split]} for split in COUNTS}
    for one, other in combinations(COUNTS, 2):
        assert not emails[one] & emails[other]


def test_tasks_of_a_scenario_share_the_form_of_their_wording_and_no_instruction() -> None:
    for split in COUNTS:
        for name, _ in scenarios(split):
            briefs = [opened(task_id).brief for task_id in task_ids(name)]
            assert len({brief.instruction for brief in briefs}) == 3
            assert len({brief.now for brief in briefs}) == 1
            assert len({brief.instruction.split()[0] for brief in briefs}) == 1


@pytest.mark.parametrize("task_id", ["likesong-n001_2", "countnotes-t998_3", "opentodos-c077_1"])
def test_an_id_alone_makes_its_task(task_id: str) -> None:
    made = make_task.__wrapped__(task_id)
    assert made.task.brief.task_id == task_id
    again = make_task.__wrapped__(task_id)
    assert again.task.database.digest() == made.task.database.digest()
    assert again.solution == made.solution


@pytest.mark.parametrize(
    "task_id",
    [
        *("", "countnotes", "countnotes-t001", "countnotes-t001_4", "countnotes-t000_1"),
        *("countnotes-x001_1", "countnotes-c001_1", "opentodos-t001_1", "Countnotes-t001_1"),
        *("countnotes-t1_1", "countnotes-t001_1\n", "nothing-t001_1"),
    ],
)
def test_an_id_of_no_task_is_refused(task_id: str) -> None:
    with pytest.raises(UnknownTask, match="expected an id such as 'countnotes-t001_1'"):
        TASKS.open(task_id)
    with pytest.raises(UnknownTask):
        TASKS.solution(task_id)


def test_tasks_are_the_same_in_every_process() -> None:
    assert _digests("1") == _digests("2") != ""


def test_worlds_of_a_task_share_nothing_that_changes() -> None:
    one, other = TASKS.open(SPREAD[0]), TASKS.open(SPREAD[0])
    before = other.digest()
    assert one.call("supervisor", "complete_task", {"answer": 1}).status == 200
    assert one.digest() != before
    assert other.digest() == before == TASKS.open(SPREAD[0]).digest()


@pytest.mark.parametrize("split", COUNTS)
def test_doing_nothing_passes_exactly_the_requirements_labelled_so(split: str) -> None:
    for task_id in TASKS.families(split):
        report = opened(task_id).report()
        assert 2 <= len(report.verdicts) <= 5, task_id
        assert {verdict.label for verdict in report.verdicts} == {"no_op_fail", "no_op_pass"}
        for verdict in report.verdicts:
            assert verdict.passed == (verdict.label == "no_op_pass"), (task_id, verdict)


def _cast(split: str) -> Cast:
    return draw_cast(Chance("people", split), split)


def test_people_have_namesakes_and_an_email_of_their_own() -> None:
    cast = _cast("dev")
    everyone = (cast.supervisor, *cast.others)
    assert len({person.email for person in everyone}) == len(everyone)
    for first_name, stranger in cast.namesakes.items():
        assert stranger.relation == ""
        assert any(person.first_name == first_name for person in cast.contacts)
    assert cast.strangers[0].last_name == cast.supervisor.last_name
    assert not {p.last_name for p in everyone} & {p.last_name for p in _cast("train").others}


def test_a_world_has_several_people_with_passwords_that_differ() -> None:
    database = opened("payback-t001_1").outcome.before
    accounts: list[Account] = list(database.of(PurseAccount).values())
    assert len(accounts) > 10
    assert len({account.password for account in accounts}) == len(accounts)


def _note(key: int, **values: object) -> Note:
    plain = {"account_id": 1, "title": "A", "content": "", "created_at": "", "updated_at": ""}
    return Note(note_id=key, **{**plain, **values})  # type: ignore[arg-type]


BEFORE: list[Record] = [_note(1, tags=("x", "y")), _note(2), _note(3)]
EXPECTED = Change(
    "", Note, added=[{"title": "B"}, {"title": "B"}], updated={1: {"title": "C"}}, removed=[3]
)
RIGHT = [_note(1, title="C", tags=("y", "x"), updated_at="now"), _note(2, updated_at="now")]
NEW = [_note(4, title="B"), _note(5, title="B", content="any")]


@pytest.mark.parametrize(
    ("after", "holds"),
    [
        ([*RIGHT, *NEW], True),
        ([*RIGHT, NEW[0]], False),
        ([*RIGHT, *NEW, _note(6)], False),
        ([*RIGHT, *NEW, _note(6, title="B")], False),
        ([*RIGHT, NEW[0], _note(5, title="b")], False),
        ([RIGHT[0], *NEW], False),
        ([RIGHT[0], _note(2), _note(3), *NEW], False),
        ([RIGHT[0], _note(2, pinned=True), *NEW], False),
        ([_note(1, title="C", tags=("x",)), RIGHT[1], *NEW], False),
        (BEFORE, False),
    ],
)
def test_a_change_holds_if_it_and_nothing_else_happened(after: list[Record], holds: bool) -> None:
    assert EXPECTED.holds(Outcome(Database(BEFORE), Database(after))) is holds
