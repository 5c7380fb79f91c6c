"""Results that were edited by hand: nothing is believed that the episodes do not say."""

import json
import shutil

import pytest
from evaluation_helpers import config, result, written
from made_results import WON, alfworld, keep, keep_run

from harness.reporting import run_and_report
from harness.reporting.results.loading import load
from harness.types.errors import ResultError


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """An evaluation with two trials and two seeds."""
    made = config(tmp_path_factory.mktemp("played"), model__name="random", run__seeds=[0, 1])
    return run_and_report.run(made)


def set_to(value, *keys):
    """Return an edit that sets one value of nested JSON."""

    def edit(content):
        *path, last = keys
        for key in path:
            content = content[key]
        content[last] = value

    return edit


EDITS = {
    "a mean": (set_to(0.93, "figures", "success", "mean"), "figures.success.mean is 0.93 in place"),
    "an interval": (set_to([0.9, 1.0], "figures", "score", "interval"), "score.interval"),
    "one seed": (set_to(0.9, "figures", "success", "per_seed", 1), r"success.per_seed\[1\] is 0.9"),
    "a family": (set_to(99, "figures", "families", "free", "count"), "families.free.count is 99"),
    "a share": (set_to(0.5, "figures", "invalid_share"), "figures.invalid_share is 0.5"),
    "turns": (set_to(1.5, "figures", "turns"), "figures.turns is 1.5"),
    "a trial": (set_to(0.7, "figures", "trials", 0, "success", "mean"), "trials"),
    "reasons": (set_to({"terminated": 16}, "figures", "stop_reasons"), "stop_reasons"),
    "a metric": (set_to({"a": 2.0}, "outcomes"), "damaged|outcomes"),
    "an outcome": (set_to([0, 0, 1, True, 1.0, 1], "outcomes", 0), r"outcomes\[0\]"),
    "no outcomes": (set_to([], "outcomes"), "outcomes is 0 values in place of 16 values"),
    "episodes": (set_to(15, "episodes", "finished"), "episodes.finished is 15 in place of 16"),
    "missing": (set_to(3, "episodes", "missing"), "episodes.missing is 3"),
    "a task": (set_to(["valid_seen/other", "free"], "tasks", 0), "task 0 is valid_seen/other"),
    "a digest": (set_to("0" * 64, "recordings", "sha256"), "was changed after it was counted"),
    "another file": (set_to("../x.jsonl", "recordings", "file"), "must be a file of the folder"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_result_is_not_believed(played, tmp_path, edit):
    change, said = EDITS[edit]
    folder = shutil.copytree(played, tmp_path / played.name)
    content = result(folder)
    change(content)
    keep(folder, content)
    with pytest.raises(ResultError, match=said):
        load(folder)
    if edit != "a task":
        run_and_report.resume(folder)
        assert written(folder) == written(played), "counting again mends it"


def test_edited_recordings_are_not_believed(played, tmp_path):
    folder = shutil.copytree(played, tmp_path / played.name)
    lines = (folder / "recordings.jsonl").read_text()
    (folder / "recordings.jsonl").write_text(lines.replace('"success":false', '"success":true'))
    with pytest.raises(ResultError, match=r"recordings.jsonl was changed after it was counted"):
        load(folder)


def test_without_recordings_the_outcomes_have_to_agree(tmp_path):
    assert load(keep(tmp_path / "right", alfworld())).figures["success"]["mean"] == 0.75
    edited = alfworld()
    edited["figures"]["families"]["heat"]["score"]["mean"] = 0.5
    with pytest.raises(ResultError, match="counted from its outcomes, figures.families.heat.score"):
        load(keep(tmp_path / "edited", edited))


@pytest.mark.parametrize(
    ("key", "value"), [("success", 0.9), ("families", {"pick": [2, 2], "heat": [2, 2]})]
)
def test_an_edited_evaluation_of_a_run_is_not_believed(tmp_path, key, value):
    folder = keep_run(tmp_path / "run", {(5, "valid_seen"): WON})
    load(folder)
    file = folder / "evaluations" / "step-000005-valid_seen.json"
    content = json.loads(file.read_text())
    content[key] = value
    file.write_text(json.dumps(content))
    with pytest.raises(ResultError, match=f"does not agree with its own episodes: {key}"):
        load(folder)
