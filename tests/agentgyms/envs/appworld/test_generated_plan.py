"""The tasks for the real engine, as planned; nothing here needs the engine."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict

import pytest

from agentgyms.envs.appworld.sandbox.child import generated
from agentgyms.envs.appworld.sandbox.child.generated.root import SPLITS, plan, plan_tasks

DUMP = """
import json
from agentgyms.envs.appworld.sandbox.child.generated.root import plan, plan_tasks
tasks = [(i, t.instruction, t.answer, t.requirements, t.blocks) for i, _, _, t in plan_tasks()]
print(json.dumps([tasks, list(plan()[0].models())], default=str))
"""


@pytest.fixture(scope="module")
def planned():
    return list(plan_tasks())


def test_scenarios_have_three_tasks_and_spread_over_splits_apps_and_difficulties(planned):
    scenarios = {scenario.name: scenario for _, scenario, _, _ in planned}
    assert [task_id for task_id, *_ in planned] == [
        f"{name}_{n}" for name in scenarios for n in (1, 2, 3)
    ]
    splits = Counter(scenario.split for scenario in scenarios.values())
    least = {"train": 6, "dev": 2, "test_normal": 3, "test_challenge": 3}
    assert list(least) == list(SPLITS)
    assert set(splits) == set(SPLITS)
    assert all(splits[split] >= number for split, number in least.items())
    assert {scenario.difficulty for scenario in scenarios.values()} == {1, 2, 3}
    apps = defaultdict(set)
    for scenario in scenarios.values():
        apps[scenario.split] |= set(scenario.apps)
    assert len(apps["train"]) >= 5
    for scenario in scenarios.values():
        if scenario.split == "test_challenge":
            assert set(scenario.apps) - apps["train"], f"{scenario.name} has no unseen app"


def test_each_task_has_two_to_five_requirements_with_one_about_everything_else(planned):
    for task_id, _, _, task in planned:
        texts = [one["requirement"] for one in task.requirements]
        assert 2 <= len(set(texts)) == len(texts) <= 5, task_id
        kinds = Counter(one["kind"] for one in task.requirements)
        assert (kinds["scope"], kinds["answer"]) == (1, 1), task_id
        assert kinds["rows"] + kinds["fields"] or task.answer is not None, task_id


def test_the_tasks_of_a_scenario_differ_in_who_asks_in_text_and_in_solution(planned):
    tasks = defaultdict(list)
    for task_id, _, person, task in planned:
        # Two counts may be equal by chance; the code that counts is not.
        tasks[task_id.split("_")[0]].append((person.id, task.instruction, task.blocks))
    for name, (first, second, third) in tasks.items():
        for one, other in ((first, second), (second, third), (third, first)):
            assert one[0] != other[0], name
            assert one[1] != other[1], name
            assert one[2] != other[2], name


def test_blocks_are_code_that_calls_only_what_the_scenario_is_about(planned):
    for task_id, scenario, _, task in planned:
        for number, block in enumerate(task.blocks):
            compile(block, f"{task_id}, block {number}", "exec")
        called = {call.split(".")[1] for call in task.calls}
        assert called == {*scenario.apps, "supervisor", "api_docs"}, task_id
        assert 4 <= len(task.blocks) <= 8, task_id


def test_records_are_numbered_in_order_and_have_the_fields_of_their_model():
    for model, rows in plan()[0].models():
        assert [row["id"] for row in rows] == list(range(1, len(rows) + 1)), model
        assert len({tuple(row) for row in rows}) == 1, model


@pytest.mark.parametrize("seed", ["0", "1"])
def test_the_plan_is_the_same_in_each_process(seed, planned):
    here = [(i, t.instruction, t.answer, t.requirements, t.blocks) for i, _, _, t in planned]
    expected = json.dumps([here, list(plan()[0].models())], default=str)
    there = subprocess.run(
        [sys.executable, "-c", DUMP],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == expected


def test_a_full_folder_is_left_alone(tmp_path):
    (tmp_path / "precious").touch()
    with pytest.raises(FileExistsError, match="new folder"):
        generated.build(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert len(generated.version()) == 12
