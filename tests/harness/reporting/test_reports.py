"""Results read back, the curves of training, and the command `harness report`."""

import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from made_results import LOST, WON, alfworld, keep, keep_run, rows
from PIL import Image

from harness.cli.report import report
from harness.reporting.curves import training_curves
from harness.reporting.results import training_runs
from harness.reporting.results.loading import load, load_all
from harness.reporting.run_report import sentence
from harness.types.errors import ConfigError, ResultError


def test_an_evaluation_is_loaded_by_its_folder_or_file(tmp_path):
    folder = keep(tmp_path / "mine", alfworld())
    for path in (folder, str(folder), folder / "result.json"):
        one = load(path)
        assert (one.folder, one.label) == (folder, "mine")
        assert (one.env_id, one.split) == ("agentgyms/ALFWorld-v0", "valid_seen")
        assert one.figures["success"]["mean"] == 0.75
    twice = load_all([folder, keep(tmp_path / "other" / "mine", alfworld())])
    assert [one.label for one in twice] == ["mine #1", "mine #2"]


def test_recordings_are_those_that_were_counted(tmp_path):
    one = load(keep(tmp_path / "mine", alfworld()))
    (tmp_path / "mine" / "recordings.jsonl").write_text("changed\n")
    with pytest.raises(ResultError, match="was changed after it was counted"):
        one.recordings()
    run = keep_run(tmp_path / "run", {(0, "valid_seen"): WON})
    with pytest.raises(ResultError, match="records no episodes of evaluations"):
        load(run).recordings()


def test_a_run_with_one_evaluation_is_reported_and_drawn(tmp_path):
    one = keep_run(tmp_path / "one", {(0, "valid_seen"): WON})
    other = keep_run(tmp_path / "other", {(9, "valid_seen"): WON})
    for words in (
        [one],
        [one, other],
        [one, "--curve", tmp_path / "one.png"],
        [one, other, "--curve", tmp_path / "both.svg"],
    ):
        done = CliRunner().invoke(report, [str(word) for word in words])
        assert done.exit_code == 0, done.output
    assert (one / "curve.png").is_file()
    assert (tmp_path / "both.svg").is_file()


def broken_result(folder):
    given = alfworld()
    del given["outcomes"]
    keep(folder, given)


def changed_result(change):
    def make(folder):
        given = alfworld()
        change(given)
        keep(folder, given)

    return make


def changed_run(**changes):
    def make(folder):
        file = (
            keep_run(folder, {(9, "valid_seen"): WON}) / "evaluations/step-000009-valid_seen.json"
        )
        given = json.loads(file.read_text()) | changes
        file.write_text(json.dumps({k: v for k, v in given.items() if v != "gone"}))

    return make


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (changed_result(lambda given: given["figures"].pop("families")), "KeyError: 'families'"),
        (changed_result(lambda given: given["figures"]["score"].pop("std")), "KeyError: 'std'"),
        (changed_result(lambda given: given["environment"].pop("split")), "KeyError: 'split'"),
        (
            changed_result(lambda given: given["outcomes"].append([9, 0, 1, True, 1, 2])),
            "IndexError",
        ),
        (changed_result(lambda given: given["outcomes"].append([0, 0])), "ValueError"),
        (changed_result(lambda given: given["episodes"].clear()), "KeyError: 'planned'"),
        (changed_run(split="gone"), "KeyError: 'split'"),
        (changed_run(success="gone"), "KeyError: 'success'"),
        (changed_run(interval=[1]), "ValueError"),
        (changed_run(families=[]), "AttributeError"),
        (changed_run(turns="many"), "ValueError"),
        (changed_run(parties=5), "TypeError"),
        (lambda folder: None, "does not exist"),
        (lambda folder: folder.mkdir(), "has no result.json"),
        (lambda folder: keep(folder, {"format": "other-1"}), "has format 'other-1': expected"),
        (broken_result, "damaged: outcomes must be of type list"),
        (lambda folder: (keep(folder, {}) / "result.json").write_text("{"), "is damaged"),
        (lambda folder: (keep(folder, {}) / "result.json").write_text("[]"), "a JSON object"),
        (lambda folder: (folder / "evaluations").mkdir(parents=True), "config.json does not exist"),
        (lambda folder: keep_run(folder, {}), "has no evaluation yet"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, make, message):
    make(tmp_path / "x")
    with pytest.raises(ResultError, match=re.escape(message)):
        load(tmp_path / "x")


def test_an_evaluation_under_way_is_told_from_a_wrong_folder(tmp_path):
    (tmp_path / "recordings.jsonl").touch()
    with pytest.raises(ResultError, match="has not ended: harness eval --resume"):
        load(tmp_path)


def test_a_damaged_episode_of_a_training_run_is_named(tmp_path):
    run = keep_run(tmp_path / "run", {(0, "valid_seen"): WON})
    file = run / "evaluations" / "step-000000-valid_seen.json"
    given = json.loads(file.read_text())
    del given["episodes"][0]["success"]
    file.write_text(json.dumps(given))
    with pytest.raises(ResultError, match=r"step-000000-valid_seen.json is damaged: KeyError"):
        load(run)


def test_a_training_run_without_scores_is_counted_from_its_episodes(tmp_path):
    both = {(0, "valid_seen"): LOST, (0, "valid_unseen"): LOST, (9, "valid_seen"): WON}
    one, unseen = load_all([keep_run(tmp_path / "run", both)])
    assert (one.label, unseen.label) == ("run valid_seen", "run valid_unseen")
    assert one.figures["success"]["mean"] == 0.75
    assert one.figures["score"]["mean"] == (3 + 0.5) / 4
    assert one.figures["invalid_share"] == 0.25
    assert one.figures["tokens"] is None
    assert one.result["episodes"] == {"planned": 5, "finished": 4, "missing": 1}
    assert one.result["missing"][0]["error"] == "the server is gone"
    assert one.result["training"] == {"steps": [9], "runs": ["run"]}


def test_curves_of_several_runs(tmp_path):
    given = {(0, "valid_seen"): LOST, (5, "valid_seen"): LOST, (9, "valid_seen"): WON}
    other = {(0, "valid_seen"): LOST, (9, "valid_seen"): LOST}
    runs = [
        training_runs.read(keep_run(tmp_path / "a", given, seed=0)),
        training_runs.read(keep_run(tmp_path / "b", other, seed=1)),
    ]
    curve = training_curves.group_curve(runs)
    assert (curve.label, curve.steps, curve.values) == (
        "GiGPO (2 seeds, mean ± std)",
        (0, 9),
        (25, 50),
    )
    assert curve.high[1] - curve.values[1] == pytest.approx(35.355, abs=1e-3)
    assert curve.low[0] == curve.high[0] == 25
    groups = training_runs.group_by_settings(runs)
    for name in ("first.svg", "second.svg"):
        training_curves.draw_success(tmp_path / name, groups)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()
    assert "<svg" in (tmp_path / "first.svg").read_text()
    with pytest.raises(ConfigError, match=r"must end in \.png or \.svg"):
        training_curves.draw_success(tmp_path / "curve.gif", groups)


def test_a_split_that_is_evaluated_at_few_steps_has_points_and_no_line(tmp_path):
    given = {(step, "valid_seen"): LOST for step in (0, 5, 9)}
    run = training_runs.read(
        keep_run(tmp_path / "a", given | {(s, "valid_unseen"): WON for s in (0, 9)})
    )
    curves = {curve.label: curve for split in training_curves.by_split(run) for curve in split}
    assert {label: curve.points for label, curve in curves.items() if not curve.dashed} == {
        "valid_seen (95 % interval)": False,
        "valid_unseen (95 % interval)": True,
    }
    training_curves.draw_success(tmp_path / "curve.svg", [[run]])
    assert (tmp_path / "curve.svg").stat().st_size > 10_000


def test_a_run_is_told_in_a_sentence(tmp_path):
    given = {(0, "valid_seen"): LOST, (5, "valid_seen"): LOST, (9, "valid_seen"): WON}
    assert sentence(keep_run(tmp_path / "a", given)) == (
        "25.0 -> 75.0 % of 4 held-out tasks (valid_seen); generated tasks, not the benchmark"
    )
    assert sentence(keep_run(tmp_path / "b", {(9, "valid_seen"): WON})) == ""


def run_report(*arguments):
    ended = CliRunner().invoke(report, [str(a) for a in arguments])
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended


def test_the_command_draws_one_run_again(tmp_path):
    run = keep_run(tmp_path / "run", {(0, "valid_seen"): LOST, (9, "valid_seen"): WON})
    ended = run_report(run)
    assert ended.exit_code == 0
    first, last = rows(ended.output)[1:]
    assert first == [
        *("valid_seen", "0", "0.0", "50.0", "25.0", "0.0 to 100.0", "62.5", "21.9 to 90.8"),
        *("4.0", "4"),
    ]
    assert last[:5] == ["valid_seen", "9", "50.0", "100.0", "75.0"]
    table = (run / "table.md").read_text()
    assert ended.output == f"{table}\ncurve:    {run}/curve.png\n"
    with Image.open(run / "curve.png") as image:
        assert len(image.convert("RGB").getcolors(1 << 24)) > 20, "the curve is drawn"


def test_the_command_writes_every_format(tmp_path):
    runs = [
        keep_run(tmp_path / name, {(9, "valid_seen"): WON}, seed=seed)
        for name, seed in (("a", 0), ("b", 1))
    ]
    mine = keep(tmp_path / "mine", alfworld())
    assert "75.0 ± 0.0" in run_report(*runs).output
    assert run_report(mine, "--format", "latex").output.startswith("% needs")
    assert "reported: SCPO, Table 1" in run_report(mine, "--format", "csv", "--reported").output
    ended = run_report(*runs, "--curve", tmp_path / "c.svg", "--output", tmp_path / "t.md")
    assert ended.output == ""
    assert "GiGPO" in (tmp_path / "t.md").read_text()
    assert (tmp_path / "c.svg").exists()
    text = run_report(mine, keep(tmp_path / "other", alfworld()), "--paired").output
    assert "wins 0, losses 0, ties 4" in text


def test_the_command_refuses_what_it_cannot_do(tmp_path):
    mine = keep(tmp_path / "mine", alfworld())
    ended = run_report(mine, mine, "--paired", "--format", "csv")
    assert ended.exit_code == 2
    assert "--paired is written in Markdown only" in ended.output
    with pytest.raises(ResultError, match="--curve draws training runs, and none is given"):
        run_report(mine, "--curve", tmp_path / "c.png")
    with pytest.raises(ResultError, match="does not exist"):
        run_report(tmp_path / "nothing")
    for option in ("--output", "--curve", "--html"):
        ended = run_report(mine, option, tmp_path / "nowhere" / "file.png")
        assert ended.exit_code == 2
        assert "there is no folder" in ended.output
    assert run_report().exit_code == 2


def test_reports_need_no_torch(tmp_path):
    mine, run = keep(tmp_path / "mine", alfworld()), tmp_path / "run"
    keep_run(run, {(0, "valid_seen"): WON})
    program = f"""
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
from harness.cli.report import report
for arguments in (["{mine}", "--reported"], ["{mine}", "{run}", "--format", "csv"]):
    report(arguments, standalone_mode=False)
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)
