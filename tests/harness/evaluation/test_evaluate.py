"""Evaluation figures, reports and logs, against numbers worked by hand."""

import json
from collections import Counter

import pytest
from PIL import Image

from agentgyms.core.tasks import Task, TaskSet
from harness import config as configs
from harness.evaluation.evaluate import Rate, choose, summarise
from harness.evaluation.statistics import wilson
from harness.reporting import run_report
from harness.runs import metrics
from harness.runs.metrics import MetricsLog
from harness.runs.runfolder import RunFolder
from harness.types.errors import CheckpointError, ConfigError
from harness.types.rollout import Completion, Rollout, StopReason, Turn


def test_wilson_intervals_by_hand():
    # 8 of 10: Wilson (1927) gives 0.490 to 0.943; 0 of 10: 0 to 0.278.
    assert Rate(8, 10).interval == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert Rate(0, 10).interval == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert Rate(10, 10).interval == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert Rate(0, 0).interval == (0.0, 1.0)


def test_intervals_of_scores_are_those_of_successes_at_the_same_rate():
    assert wilson(0.8, 10) == Rate(8, 10).interval
    low, high = wilson(1 / 3, 100)  # 0.3333 + 1.9207 / 100, over 1 + 3.8415 / 100
    assert (low + high) / 2 == pytest.approx(0.3395, abs=1e-4)
    assert wilson(float("nan"), 0) == (0.0, 1.0)
    for count in range(1, 30):
        for mean in (0.0, 1e-17, 0.3, 1.0):
            low, high = wilson(mean, count)
            assert 0 <= low <= mean <= high <= 1


def turn(feedback):
    return Turn("o", "s", Completion("x"), "x", "x", feedback, 0.0, "o", "s", 0.0)


def rollouts():
    return [
        Rollout("a", "heat", 0, 0, 0, "", [turn("ok")] * 4, StopReason.TERMINATED, True, 1.0),
        Rollout(
            "b", "heat", 1, 0, 0, "", [turn("inadmissible")] * 2, StopReason.TURN_LIMIT, False, 0.5
        ),
        Rollout(
            "c", "cool", 2, 0, 0, "", [turn("malformed")] * 2, StopReason.TURN_LIMIT, False, 0.0
        ),
        Rollout("d", "", 3, 0, 0, error="the server is gone"),
    ]


def test_a_summary_by_hand():
    result = summarise(rollouts(), "valid_seen")
    assert result.success == Rate(1, 3)
    assert result.families == {"cool": Rate(0, 1), "heat": Rate(1, 2)}
    assert result.score_interval == pytest.approx((0.1253, 0.8747), abs=1e-4)
    assert result.metrics()["eval/valid_seen/score_low"] == result.score_interval[0]
    assert (result.score, result.turns, result.invalid, result.missing) == (0.5, 8 / 3, 0.5, 1)
    assert result.metrics()["eval/valid_seen/success_heat"] == 0.5
    assert [e["error"] for e in result.episodes] == ["", "", "", "the server is gone"]


def test_the_choice_of_tasks_is_balanced_and_fixed():
    tasks = TaskSet("s", [Task(f"{f}-{i:02d}", f) for f in ("a", "b", "c") for i in range(20)])
    chosen = choose(tasks, 9)
    assert choose(tasks, 9) == chosen
    assert [sum(t.startswith(f) for t in chosen) for f in "abc"] == [3, 3, 3]
    assert len(set(choose(tasks, 31))) == 31
    assert choose(tasks, None) == choose(tasks, 60) == list(tasks)


def test_scenarios_are_chosen_whole():
    names = [f"{name}{i}" for name in ("easy", "hard") for i in range(8)]
    tasks = TaskSet("dev", [Task(f"{name}_{n}", name[:4]) for name in names for n in (1, 2, 3)])
    chosen = choose(tasks, 12)
    assert choose(tasks, 12) == chosen
    scenarios = Counter(task_id.rpartition("_")[0] for task_id in chosen)
    assert list(scenarios.values()) == [3] * 4
    assert sum(name.startswith("easy") for name in scenarios) == 2
    torn = Counter(task_id.rpartition("_")[0] for task_id in choose(tasks, 10))
    assert sorted(torn.values()) == [1, 3, 3, 3]


@pytest.mark.parametrize("count", [2, 4, 6, 8, 24, 40])
def test_of_encounters_at_two_seats_both_seats_are_chosen_alike(count):
    names = [f"{family}{i}" for family in "abcd" for i in range(10)]
    tasks = TaskSet("all", [Task(f"{name}/{seat}", name[0]) for name in names for seat in (0, 1)])
    chosen = choose(tasks, count)
    assert Counter(task_id[-1] for task_id in chosen) == {"0": count // 2, "1": count // 2}
    assert len({task_id.partition("/")[0] for task_id in chosen}) == count
    assert set(choose(tasks, count)) <= set(choose(tasks, count + 4))


def test_ids_that_only_look_like_scenarios_are_chosen_one_by_one():
    tasks = TaskSet("test", [Task(f"test_{i}", "nq") for i in range(30)])
    numbers = sorted(int(task_id.partition("_")[2]) for task_id in choose(tasks, 6))
    assert numbers != list(range(6))
    assert numbers[-1] - numbers[0] > 15


@pytest.fixture
def folder(tmp_path):
    config = configs.load("corridor-tiny", [f"run.output='{tmp_path}'"])
    made = RunFolder.from_config(config)
    made.create(config)
    return made


def test_a_run_folder_tells_what_ran(folder):
    provenance = json.loads((folder.path / "provenance.json").read_text())
    assert provenance["seed"] == 0
    assert provenance["libraries"]["torch"]
    assert folder.config().run.name == "corridor"
    with pytest.raises(ConfigError, match="holds a run already: delete"):
        folder.create(folder.config())
    with pytest.raises(CheckpointError, match="is no run"):
        RunFolder(folder.path / "nothing").config()


def test_curve_and_table(folder):
    log = MetricsLog(folder.path)
    for step in (0, 5, 10):
        evaluation = summarise(rollouts()[: 3 if step else 1], "valid_seen")
        folder.write_evaluation(step, evaluation.record())
        log.write(step, {"rollout/success": step / 10})
    log.close()
    run_report.write(folder.path)
    table = (folder.path / "table.md").read_text().splitlines()
    assert table[0] == (
        "| split | step | heat | cool | all | 95 % interval | score | 95 % interval "
        "| turns | tasks |"
    )
    assert table[2] == (
        "| valid_seen | 0 | 100.0 | - | 100.0 | 20.7 to 100.0 | 100.0 | 20.7 to 100.0 | 4.0 | 1 |"
    )
    assert table[3] == (
        "| valid_seen | 10 | 50.0 | 0.0 | 33.3 | 6.1 to 79.2 | 50.0 | 12.5 to 87.5 | 2.7 | 3 |"
    )
    assert len(table) == 4
    with Image.open(folder.path / "curve.png") as image:
        assert image.size == (1050, 630)
        assert len(image.convert("RGB").getcolors(1 << 24)) > 20, "the curve is drawn"


def test_metrics_survive_a_cut_line_and_drop_steps_that_will_run_again(tmp_path):
    log = MetricsLog(tmp_path)
    for step in range(1, 5):
        log.write(step, {"x": float(step), "nothing": float("nan")})
    log.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "x"')
    assert [r["x"] for r in metrics.read(tmp_path)] == [1, 2, 3, 4]
    MetricsLog(tmp_path, resume_step=2).close()
    assert [r["step"] for r in metrics.read(tmp_path)] == [1, 2]
    assert metrics.read(tmp_path)[0]["nothing"] is None
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\nnonsense\n{"step": 2}\n')
    with pytest.raises(CheckpointError, match="line 2"):
        metrics.read(tmp_path)
