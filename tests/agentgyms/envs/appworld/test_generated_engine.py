"""The generated data in the real engine, played through the environment."""

import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from agentgyms.envs.appworld.engine.world import EngineTasks
from agentgyms.envs.appworld.env import AppWorldEnv
from agentgyms.envs.appworld.sandbox.child import generated
from agentgyms.envs.appworld.sandbox.child.generated.root import SPLITS, plan, plan_tasks

pytestmark = pytest.mark.appworld

SHORTCUTS = {
    "note-tag": (r"pages\((apis\S*)search_notes, ", r"\1search_notes("),
    "note-delete": (r'if note\["title"\] == .*\]\[0\]', r"][-1]"),
    "alarm-off": (
        r"update_alarm\(alarm_id=alarm_id, enabled=False",
        "delete_alarm(alarm_id=alarm_id",
    ),
    "song-longest": (r"max\(", "min("),
    "urgent-done": (r'tasks \+= section\["tasks"\]', "pass"),
    "genre-playlist": (r'if song\["song_id"\] in owned', ""),
    "money-sent": (r'min_created_at="[^"]*", ', ""),
    "requests-approve": (r'if one\["sender"\].*:', "if True:"),
    "dinner-requests": (r"amount=amount", "amount=round(amount)"),
    "task-add": (r'priority="low", ', ""),
    "text-all": (r'if ".*" in one\["relationships"\]', ""),
    "errands-to-tasks": (r"line\[2:\]", "line"),
    "note-append": (r'note\["content"\] \+ ', ""),
    "library-trim": (r"pages\(apis.spotify.search_songs, ", "apis.spotify.search_songs("),
    "top-receiver": (r'direction="sent"', 'direction="received"'),
    "debts-pay": (r"if amount < .*:", "if True:"),
    "files-count": (r"recursive=True", "recursive=False"),
    "mail-star": (r"pages\(apis.gmail.show_inbox_threads, ", "apis.gmail.show_inbox_threads("),
    "mail-archive": (r'one\["read"\] and ', ""),
    "bills-split": (r"len\(mates\) \+ 1", "len(mates)"),
    "bill-highest": (r"max\(", "min("),
}
"""A plausible mistake in each scenario: a part of the solution, and what stands for it."""

DAMAGE = {
    "note-delete_2": "update_account_name(first_name='Zoe', access_token=simple_note_token)",
    "note-append_2": "create_note(title='New', content='x', access_token=simple_note_token)",
}
"""Calls beside what was asked for, before the last block of a solution."""


def truth(roots, task_id, name):
    file = roots.truth / "data" / "tasks" / task_id / "ground_truth" / f"{name}.json"
    return json.loads(file.read_text())


@pytest.fixture(scope="module")
def split_of(generated_roots):
    return {task_id: split for split in SPLITS for task_id in generated_roots.tasks(split)}


def wrong_solutions(roots):
    """Return what is played in place of solutions: each scenario's shortcut, needless damage."""
    wrong = {}
    for name, change in SHORTCUTS.items():
        blocks = truth(roots, f"{name}_1", "solution_blocks")
        wrong[f"{name}_1"] = [re.sub(*change, block) for block in blocks]
        assert wrong[f"{name}_1"] != blocks, name
    for task_id, call in DAMAGE.items():
        *most, last = truth(roots, task_id, "solution_blocks")
        wrong[task_id] = [*most, f"apis.simple_note.{call}", last]
    return wrong


def play(split, task_id, blocks):
    """Return the last turn's reward and `info`; without blocks, those of the expert."""
    env = AppWorldEnv(engine="appworld", split=split)
    try:
        env.reset(options={"task_id": task_id})
        ended, codes = False, iter(blocks or ())
        while not ended:
            code = next(codes) if blocks else env.expert_actions()["best"]
            _, reward, terminated, truncated, info = env.step(code)
            ended = terminated or truncated
        return reward, info
    finally:
        env.close()


def play_all(split_of, jobs):
    """Play two episodes at a time."""
    with ThreadPoolExecutor(2) as pool:
        played = pool.map(lambda job: play(split_of[job[0]], *job), jobs)
        return {task_id: result for (task_id, _), result in zip(jobs, played, strict=True)}


@pytest.fixture(scope="module")
def wrong(generated_roots, split_of):
    return play_all(split_of, list(wrong_solutions(generated_roots).items()))


def test_the_expert_reaches_all_task_and_scenario_goals(split_of):
    solved = play_all(split_of, [(task_id, None) for task_id in split_of])
    failed = {task_id: info for task_id, (reward, info) in solved.items() if reward != 1}
    assert failed == {}
    assert len(solved) == 3 * len(SHORTCUTS)
    assert all(info["success"] and info["score"] == 1 for _, info in solved.values())


@pytest.mark.parametrize("name", list(SHORTCUTS)[::3])
def test_doing_nothing_passes_exactly_what_is_labelled_so(name, generated_roots):
    world = EngineTasks().open(f"{name}_2")
    try:
        passed = {one.requirement for one in world.report().verdicts if one.passed}
    finally:
        world.close()
    labels = truth(generated_roots, f"{name}_2", "test_data")
    assert passed == {one["requirement"] for one in labels if one["label"] == "no_op_pass"}


@pytest.mark.parametrize("name", SHORTCUTS)
def test_a_plausible_mistake_fails(name, wrong):
    reward, info = wrong[f"{name}_1"]
    assert (reward, info["success"]) == (0, False)
    assert info["score"] < 1


@pytest.mark.parametrize("task_id", DAMAGE)
def test_needless_damage_fails_one_requirement_alone(task_id, wrong):
    _, info = wrong[task_id]
    assert info["metrics"]["score_over_no_op"] == 1
    assert info["metrics"]["tests"] - info["metrics"]["tests_passed"] == 1


def test_every_scenario_has_its_mistake(split_of):
    assert {task_id.split("_")[0] for task_id in split_of} == set(SHORTCUTS)


def test_the_databases_hold_the_planned_records(generated_roots):
    # And the plan is the same in each process: two builds hold the same.
    for model, rows in plan()[0].models():
        app, _, name = model.partition(".")
        plain = [field for field, value in rows[0].items() if isinstance(value, str | int | float)]
        columns = ", ".join(f'"{field}"' for field in plain)
        file = generated_roots.world / "data" / "base_dbs" / f"{app}.db"
        with closing(sqlite3.connect(file)) as database:
            table = table_of(database, name.lower())
            found = database.execute(f'SELECT {columns} FROM "{table}" ORDER BY id').fetchall()
        assert found == [tuple(row[field] for field in plain) for row in rows], model


def table_of(database, model):
    plurals = {f"{model}s", f"{model.removesuffix('y')}ies"}
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    (table,) = {name for (name,) in tables if name.replace("_", "") in plurals}
    return table


def test_what_an_agent_may_see_holds_neither_answers_nor_solutions(generated_roots):
    data = generated_roots.world / "data"
    secret = {}
    for task_id, _, _, task in plan_tasks():
        folder = data / "tasks" / task_id
        assert {path.name for path in folder.iterdir()} == {"specs.json", "dbs"}
        specs = json.loads((folder / "specs.json").read_text())
        assert specs["instruction"] == task.instruction
        assert set(specs) == {
            "instruction",
            "supervisor",
            "datetime",
            "db_version",
            "canary_string",
        }
        text = "".join(file.read_text() for file in (folder / "dbs").iterdir())
        if isinstance(task.answer, str):
            assert task.answer not in text, task_id
        for one in task.requirements:
            secret[one["requirement"]] = task_id
        for block in task.blocks:
            secret |= {line: task_id for line in block.splitlines() if len(line) > 30}
    for path in (path for path in data.rglob("*") if path.is_file()):
        text = path.read_bytes().decode(errors="replace")
        assert not [line for line in secret if line in text], path


def test_the_version_is_that_of_the_generator(generated_roots):
    assert generated_roots.version == generated.version()
