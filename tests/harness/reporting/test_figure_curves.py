"""Logged figures over steps: tables and curves, against numbers by hand."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from small_training import run, small

from harness.cli.main import main
from harness.reporting.curves import figure_curves
from harness.reporting.results import training_runs
from harness.types.errors import AgentGymsError, ResultError

NAMES = "update/entropy,credit/advantage_range,eval/valid_seen/success"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of a method with two seeds and of another with one."""
    folder = tmp_path_factory.mktemp("runs")
    few = ["run.steps=2", "eval.every=1", "eval.tasks=2"]
    made = [run(small(folder, f"gigpo-seed{seed}", *few, f"run.seed={seed}")) for seed in (0, 1)]
    made.append(run(small(folder, "ecpo-seed0", *few, "method.name=ecpo")))
    return [trainer.folder.path for trainer in made]


def report(*arguments):
    done = CliRunner().invoke(main, ["report", *map(str, arguments)])
    if isinstance(done.exception, AgentGymsError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def logged(folder, name):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if line.get(name) is not None]


def test_the_table_is_of_the_logged_values(runs):
    text = report(*runs, "--figures", NAMES)
    rows = [line.split(" | ") for line in text.splitlines()[2:] if line.startswith("|")]
    assert [row[0].strip("| `") for row in rows] == [n for n in NAMES.split(",") for _ in range(2)]
    assert [row[1:3] for row in rows[:2]] == [["gigpo", "2"], ["ecpo-seed0", "1"]]
    both = [np.mean(logged(folder, "update/entropy")) for folder in runs[:2]]
    assert rows[0][4] == f"{np.mean(both):.4g}±{np.std(both, ddof=1):.2g}"
    first, last = logged(runs[2], "update/entropy")
    assert rows[1][6:9] == [f"{first:.4g}", f"{last:.4g}", f"{abs(last - first):.4g}"]
    assert rows[5][3] == "0 to 2"


def test_every_value_as_csv_and_a_picture(runs, tmp_path):
    curve, table = tmp_path / "curve.svg", tmp_path / "values.csv"
    report(*runs, "--figures", "credit/advantage_range", "--smooth", 2, "--from-step", 2,
           "--curve", curve, "--format", "csv", "--output", table)  # fmt: skip
    heading, *lines = table.read_text().splitlines()
    assert heading == "figure,run,step,mean,std,seeds,world"
    assert [line.split(",")[2] for line in lines] == ["2", "2"]
    values = [logged(folder, "credit/advantage_range")[1] for folder in runs[:2]]
    assert float(lines[0].split(",")[3]) == np.mean(values)
    assert curve.read_text().startswith("<?xml")


def test_a_figure_that_no_run_has_is_told_with_those_near(runs):
    with pytest.raises(ResultError, match=r"'credit/no' from step 0 on: expected such as credit/a"):
        report(*runs, "--figures", "credit/no")
    with pytest.raises(ResultError, match="from step 3 on"):
        report(*runs, "--figures", "update/loss", "--from-step", 3)


def test_a_run_without_figures_is_told(runs, tmp_path):
    copied = Path(shutil.copytree(runs[2], tmp_path / "copied"))
    (copied / "metrics.jsonl").write_text("")
    with pytest.raises(ResultError, match="no run has logged 'update/loss' from step 0 on"):
        report(copied, "--figures", "update/loss")


def test_an_evaluation_has_no_logged_figures(runs, tmp_path):
    with pytest.raises(ResultError, match="has no evaluations/"):
        report(tmp_path, "--figures", "update/loss")


def test_moving_averages_and_instability_by_hand():
    x = np.array([[1.0, 2.0, 6.0, 0.0, 1.0, 1.0]])
    assert figure_curves.smoothed(x, 1).tolist() == x.tolist()
    assert figure_curves.smoothed(x, 3).tolist() == [[1.0, 1.5, 3.0, 8 / 3, 7 / 3, 2 / 3]]
    series = figure_curves.Series("f", "run", (1, 2, 3, 4, 5, 6), x, "ALFWorld")
    row = figure_curves.to_markdown([series]).splitlines()[2].strip("| ").split(" | ")
    stds = [np.std(x[0, :5], ddof=1), np.std(x[0, 1:], ddof=1)]
    assert row[8:] == ["6", f"{np.mean(stds):.4g}"]


def test_seeds_are_grouped_as_in_every_report(runs):
    groups = training_runs.group_by_settings([training_runs.read(folder) for folder in runs])
    found = figure_curves.read(groups, ["update/loss"])
    assert [series.values.shape for series in found] == [(2, 2), (1, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--figures", "update/loss", "--checkpoint", "best"], "--checkpoint is not for --figures"),
        (["--figures", "update/loss", "--sweep", "x.svg"], "--sweep is not for --figures"),
        (["--figures", "update/loss", "--html", "x.html"], "--html is not for --figures"),
        (["--smooth", "3"], "--smooth is for --figures alone"),
        (["--from-step", "0"], "--from-step is for --figures alone"),
    ],
)
def test_options_that_would_be_ignored_are_refused(options, message, tmp_path):
    done = CliRunner().invoke(main, ["report", str(tmp_path), *options])
    assert done.exit_code == 2
    assert message in done.output
