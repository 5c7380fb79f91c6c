"""Figures of generated tasks never stand as a benchmark's: tables, pages, curves, comparisons."""

import csv
import io
import json

import gymnasium as gym
import pytest
from click.testing import CliRunner
from made_results import WON, alfworld, episodes, keep, keep_run, result, rows

from harness.cli.main import main
from harness.reporting.evaluation_page import page
from harness.reporting.results import setting
from harness.reporting.results.loading import load, load_all
from harness.reporting.run_report import write
from harness.reporting.tables import details, formats
from harness.reporting.tables import rows as tables

LABEL = "generated tasks, not the benchmark"
PLAYED = {
    # Environment, arguments, whose tasks they are.
    ("ALFWorld", ()): "generated",
    ("ALFWorld", (("source", "official"),)): "official",
    ("WebShop", ()): "generated",
    ("WebShopBrowser", (("source", "official"),)): "official",
    ("SOTOPIA", ()): "generated",
    ("SearchQA", ()): "generated",
    ("Tau2", ()): "generated",
    ("SearchQA", (("source", "flashrag"),)): "official",
    ("AppWorld", ()): "MiniAppWorld",
    ("AppWorld", (("engine", "appworld"),)): "generated",
    ("AppWorld", (("engine", "appworld"), ("source", "official"))): "official",
    ("Sokoban", ()): "generated",
    ("VisualSokoban", (("compat_seed", True),)): "official",
    ("Sokoban", (("levels", "rooms"),)): "",
    ("Corridor", ()): "",
}


@pytest.mark.parametrize("which", PLAYED, ids=str)
def test_arguments_decide_whose_tasks_were_played(which):
    name, kwargs = which
    assert setting.data_source(f"agentgyms/{name}-v0", dict(kwargs)) == PLAYED[which]


def test_what_the_environment_said_counts_more_than_arguments():
    assert setting.data_source("agentgyms/ALFWorld-v0", {}, "official") == "official"
    assert setting.data_source("mine:own/ALFWorld-v0", {}, None) == ""
    assert setting.data_source("agentgyms/ALFWorld-v0", "damaged") == ""


@pytest.mark.parametrize("name", ["ALFWorld", "AppWorld", "SearchQA", "Sokoban", "SOTOPIA", "Tau2"])
def test_environments_say_it_themselves(name):
    env = gym.make(f"agentgyms/{name}-v0", split="sample").unwrapped
    assert env.data_source == PLAYED[name, ()]
    env.close()


def appworld(data_source):
    records = episodes({"a_1": True, "a_2": True, "a_3": True}, metrics={"difficulty": 1.0})
    more = {"env_id": "agentgyms/AppWorld-v0", "split": "test_normal", "kind": "react"}
    return result(records, data_source=data_source, **more)


def shown(path, **options):
    built = tables.build(load_all([path]), with_reported=True)
    return {
        "markdown": formats.tables_to_markdown(built),
        "latex": formats.to_latex(built),
        "csv": formats.to_csv(built),
        "details": details.to_markdown(load(path)),
    }


def test_every_form_of_a_table_says_it(tmp_path):
    texts = shown(keep(tmp_path / "a", alfworld(data_source="generated")))
    assert all(LABEL in text for text in texts.values()), texts
    assert texts["details"].startswith(f"**ALFWorld valid_seen, {LABEL}**")
    texts = shown(keep(tmp_path / "b", alfworld(data_source="official")))
    assert not any(LABEL in text for text in texts.values())


def test_miniappworld_never_stands_as_appworld(tmp_path):
    texts = shown(keep(tmp_path / "a", appworld("MiniAppWorld")))
    assert texts["markdown"].startswith(f"**MiniAppWorld test_normal, {LABEL}**")
    assert not any(
        "| AppWorld" in t or "AppWorld test" in t.replace("MiniAppWorld", "")
        for t in texts.values()
    )
    line = next(csv.DictReader(io.StringIO(texts["csv"])))
    assert (line["environment"], line["data"]) == ("MiniAppWorld", LABEL)


def test_papers_stand_beside_official_data_alone(tmp_path):
    generated = shown(keep(tmp_path / "a", appworld("MiniAppWorld")))["markdown"]
    assert len(rows(generated)) == 4, "headings and one row, twice"
    left_out = (
        "MiniAppWorld test_normal: the papers' numbers are left out, the tasks were generated"
    )
    assert left_out in generated
    official = shown(keep(tmp_path / "b", appworld("official")))["markdown"]
    assert len(rows(official)) > 10
    assert "left out" not in official


def test_official_and_generated_tasks_share_no_table(tmp_path):
    paths = [
        keep(tmp_path / name, alfworld(data_source=name)) for name in ("official", "generated")
    ]
    one, two = tables.build(load_all(paths), with_reported=True)
    assert (one.title, two.title) == ("ALFWorld valid_seen", f"ALFWorld valid_seen, {LABEL}")
    assert (one.with_source, two.with_source) == (True, False)


def test_training_runs_say_it_in_table_and_curves(tmp_path):
    run = keep_run(tmp_path / "run", {(0, "valid_seen"): WON, (5, "valid_seen"): WON})
    write(run)
    assert f"ALFWorld-v0, {LABEL}" in (run / "table.md").read_text()
    arguments = ["report", str(run), "--curve", str(tmp_path / "curve.svg")]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert LABEL in done.output
    assert LABEL in (tmp_path / "curve.svg").read_text()


def test_a_run_on_a_server_says_what_the_server_said(tmp_path):
    run = keep_run(tmp_path / "run", {(5, "valid_seen"): WON})
    (file,) = (run / "evaluations").iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "data_source": "official"}))
    write(run)
    assert LABEL not in (run / "table.md").read_text()
    assert load(run).result["data_source"] == "official"


def test_pages_and_comparisons_say_it(tmp_path):
    paths = [
        keep(tmp_path / name, alfworld(data_source="generated", model=name)) for name in ("a", "b")
    ]
    arguments = ["report", *map(str, paths), "--paired"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    paired = done.output.partition("a against b")[2]
    assert f"- ALFWorld valid_seen, {LABEL}" in paired


def test_a_page_is_titled_by_what_was_played(tmp_path):
    run = keep_run(tmp_path / "run", {(5, "valid_seen"): WON})
    config = json.loads((run / "config.json").read_text())
    config["env"]["id"] = "agentgyms/AppWorld-v0"
    (run / "config.json").write_text(json.dumps(config))
    shown = page.render([load(run)])
    assert "on MiniAppWorld valid_seen</title>" in shown
    assert f"MiniAppWorld: {LABEL}" in shown
