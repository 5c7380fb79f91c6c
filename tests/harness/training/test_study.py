"""The study: its page says what its recipe and its script do, and both run."""

import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness import config as configs
from harness.credit import TurnTable
from harness.credit.diagnostics import layer_figures
from harness.preflight import defaults
from harness.reporting.credit_view import recordings
from harness.reporting.results import training_runs
from harness.rollouts import rollout_files
from harness.runs import metrics

ROOT = Path(__file__).parents[3]
STUDIES = ROOT / "benchmarks/studies"
SCRIPT = STUDIES / "study.sh"
SMALL = [
    "policy.tiny={layers=1, hidden=32, heads=4, feed_forward=32, vocabulary=400}",
    "env.max_turns=6",
    "run.steps=1",
    "rollout.tasks_per_step=2",
    "rollout.group_size=2",
    "rollout.enough_members=2",
    "warmstart.episodes=4",
    "warmstart.steps=2",
    "eval.tasks=2",
    "eval.max_turns=2",
]


def table(first, page="study.md"):
    """Return the rows of a page's table whose header begins so, without backticks."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])
    return rows


def own_settings(method):
    """Return what the script sets for a method."""
    text = SCRIPT.read_text(encoding="utf-8")
    function = text[text.index("settings() {") : text.index("\n}\n") + 3]
    told = subprocess.run(
        ["bash", "-c", f"{function}settings {method}"], capture_output=True, text=True, check=True
    )
    return told.stdout.split("\n")[:-1]


def test_the_page_tells_the_recipe():
    values = configs.to_dict(configs.load("alfworld-tiny-study"))
    rows = table("setting")
    assert len(rows) >= 7
    for name, value in rows:
        found = values
        for key in name.split("."):
            found = found[key]
        told = tomllib.loads(f"value = {value}")["value"]
        assert (list(found) if isinstance(found, tuple) else found) == told, name


def test_the_page_tells_what_each_method_is_given():
    rows = table("`method.name`")
    names = [name for name, _ in rows]
    assert f"METHODS:-{' '.join(names)}}}" in SCRIPT.read_text(encoding="utf-8")
    for name, told in rows:
        own = own_settings(name)
        assert " ".join(own) == told
        config = configs.load("alfworld-tiny-study", [f"method.name={name}", *own])
        resolved = defaults.resolve(config)
        penalty = {"ecpo": 0.0, "graphgpo": 0.0, "graft": 0.01}.get(name, 0.02)
        assert resolved.method.credit["invalid_penalty"] == penalty
        assert resolved.method.credit.get("statistics", "turn") == "turn"
        assert not resolved.method.loss["kl_coefficient"]
        assert (resolved.rollout.enough_members, resolved.rollout.enough_share) == (8, 1.0)
        assert resolved.optimizer.epochs == 1


def test_the_page_of_budgets_tells_what_each_method_is_given():
    rows = table("`method.name`", "study_branching.md")
    assert len(rows) == len(table("method", "study_branching.md")) == 7
    for name, told, _ in rows:
        own = own_settings(name)
        assert " ".join(own) == told
        defaults.resolve(configs.load("corridor-tiny-demo", [f"method.name={name}", *own]))


@pytest.mark.parametrize("name", ["graphgpo", "g2po", "graft", "oracle"])
def test_further_methods_can_be_chosen(name):
    config = configs.load("alfworld-tiny-study", [f"method.name={name}", *own_settings(name)])
    method = defaults.resolve(config).method
    divides = name == "graphgpo"
    penalty = {"graphgpo": 0.0, "graft": 0.01}.get(name, 0.02)
    assert method.credit["invalid_penalty"] == penalty
    assert method.credit.get("norm", "mean") == ("std" if divides else "mean")
    assert method.credit.get("scale", "none") == "none"
    assert method.annotators == ({"continuations": {"count": 4}} if name == "oracle" else {})
    assert f"`{name}`" in (ROOT / "docs/study.md").read_text(encoding="utf-8")


def test_the_table_of_results_has_every_method():
    names = [name for name, *_ in table("method")]
    assert names[0] == "before"
    assert len(names) == 1 + len(table("`method.name`"))


def test_rho_is_the_logged_figure_and_takes_the_first_members(tmp_path, monkeypatch):
    """A run logs the mean over repeated states, under the reading that it was trained with."""
    monkeypatch.syspath_prepend(str(STUDIES))
    rho = importlib.import_module("rho")
    config = defaults.resolve(configs.load("alfworld-tiny-study", ["method.name=ecpo"]))
    played = recordings.example_rollouts()
    for folder, kept in (("whole", played), ("first", [one for one in played if one.member < 3])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(json.dumps(configs.to_dict(config)))
        for step in (1, 2):  # the same groups twice: no state may meet itself in the other step
            rollout_files.write(tmp_path / folder / f"rollouts/step-{step:06d}.jsonl.gz", kept)
    whole, first, cut = (rho.read(str(tmp_path / name)) for name in ("whole", "first", "who*:3"))
    turns = TurnTable.from_rollouts(played, reward="environment", reward_scale=2.0)
    logged = layer_figures("ecpo", turns, config.method.credit)["reliability"]
    assert rho.mean(whole.sums({}))[0] == pytest.approx(logged)
    assert 0 < logged < rho.mean(whole.sums({"saturation": "none"}))[0]
    assert cut.name == "first 3 of 8"
    assert len(first.turns) == len(cut.turns) < len(whole.turns)
    assert rho.mean(cut.sums({})) == pytest.approx(rho.mean(first.sums({})))


@pytest.mark.slow
def test_a_small_study_runs_and_is_summed_up(tmp_path, harness_program, monkeypatch):
    monkeypatch.syspath_prepend(str(STUDIES))
    chosen = {"SEEDS": "1", "METHODS": "grpo scpo oracle"}
    chosen |= {"HARNESS": harness_program, "AUDIT": "1"}
    run = ["bash", str(SCRIPT), str(tmp_path), *SMALL]
    subprocess.run(run, env=os.environ | chosen, check=True, capture_output=True)
    first = metrics.read(tmp_path / "seed-1/scpo")
    assert [r["step"] for r in first if "rollout/success" in r] == [1]
    weights = [
        (tmp_path / f"seed-1/{name}/checkpoints/step-000000/model.safetensors").read_bytes()
        for name in ("start", "grpo", "scpo")
    ]
    assert weights[0] == weights[1] == weights[2]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.jsonl")}
    subprocess.run(run, env=os.environ | chosen, check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in before} == before, "finished runs are left"
    figure = tmp_path / "study.png"
    told = subprocess.run(
        [sys.executable, str(STUDIES / "study.py"), str(tmp_path), "--figure", str(figure)],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = told.stdout.splitlines()
    rows = [line.split(" | ")[0] for line in lines[2:]]
    assert rows == ["| before", "| GRPO", "| SCPO", "| Oracle"]
    assert len({line.count("|") for line in lines}) == 1
    assert figure.stat().st_size > 10_000
    words = [sys.executable, str(STUDIES / "foretold.py"), str(tmp_path)]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert told.startswith("2 methods, seeds 1\n"), "oracle is the truth, not foretold by it"
    names = [line.split(" | ")[0] for line in told.splitlines() if line.startswith("| ")]
    assert sorted(names[1:3]) == ["| grpo", "| scpo"]
    assert names[4:] == [f"| {name}" for name in importlib.import_module("foretold").FIGURES]


def test_what_is_foretold_is_of_the_credit_that_was_trained(monkeypatch):
    """The audit's reward is 10, the study's 2: what is added to rewards grows fivefold."""
    monkeypatch.syspath_prepend(str(STUDIES))
    foretold = importlib.import_module("foretold")
    told = {}
    for name in ("scpo", "graft"):
        config = configs.load("alfworld-tiny-study", [f"method.name={name}", *own_settings(name)])
        run = training_runs.TrainingRun(Path(), configs.to_dict(defaults.resolve(config)), [])
        words = [one.removeprefix("--credit=").split("=") for one in foretold.credit(run)]
        told |= dict(words)
    assert float(told["scpo.invalid_penalty"]) == pytest.approx(0.1)
    assert float(told["scpo.alpha"]) == pytest.approx(0.5)
    assert (told["scpo.statistics"], told["scpo.scorer"]) == ("turn", "exact")
    assert float(told["graft.invalid_penalty"]) == 0.01, "its successes count 1"


def test_a_figure_that_orders_methods_as_training_does_foretells(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDIES))
    foretold = importlib.import_module("foretold")
    start = {
        name: {key: float("nan") for key in foretold.FIGURES}
        | {"improvement": gain}
        | {"gradient": gain / 10, "sign": -gain}
        for name, gain in (("grpo", 1.0), ("gigpo", 4.0), ("ecpo", 9.0))
    }
    found = {key: foretold.correlation([start, start], key) for key in foretold.FIGURES}
    assert found["gradient"] == ["1.00", "1.00 to 1.00", "1.00"]
    assert found["sign"] == ["-1.00", "-1.00 to -1.00", "-1.00"]
    assert found["spearman"] == ["", "", ""]
    worth = {key: foretold.choice([start, start], key)[0] for key in foretold.FIGURES}
    assert (worth["gradient"], worth["sign"], worth["spearman"]) == ("+4.3", "-3.7", "")


def test_budgets_tell_what_other_seeds_would_do(monkeypatch):
    """Two seeds differ by 0 and 50 points: Student's interval of one degree of freedom."""
    monkeypatch.syspath_prepend(str(STUDIES))
    budgets = importlib.import_module("budgets")
    won = lambda *tasks: [budgets.Point({"updates": 0.0}, dict(zip("ab", tasks, strict=True)))]
    curves = {
        "GRPO": {1: won(True, False), 2: won(True, False)},
        "GiGPO": {1: won(True, False), 2: won(True, True)},
    }
    over_tasks, over_seeds = budgets._against(curves, "GiGPO", "GRPO", "updates", 1.0)
    assert over_tasks.startswith("+25.0 (")
    assert over_seeds == "-292.7 to +342.7"  # 25 ± 12.706 * 35.36 / sqrt(2)


@pytest.mark.slow
def test_methods_are_compared_at_equal_steps_and_tokens(tmp_path, monkeypatch, harness_program):
    monkeypatch.syspath_prepend(str(STUDIES))
    budgets = importlib.import_module("budgets")
    names = ["grpo", "tree_grpo", "vineppo"]
    chosen = {"SEEDS": "1", "METHODS": " ".join(names), "RECIPE": "corridor-tiny-demo"}
    chosen["HARNESS"] = harness_program
    small = [*SMALL[:3], "rollout.tasks_per_step=2", "warmstart.episodes=4", "eval.every=1"]
    run = ["bash", str(SCRIPT), str(tmp_path), *small]
    subprocess.run(run, env=os.environ | chosen, check=True, capture_output=True)
    for name in names:
        folder = tmp_path / "seed-1" / name
        (line,) = [r for r in metrics.read(folder) if "rollout/turns" in r]
        played = [
            one
            for path in (folder / "rollouts").iterdir()
            for one in rollout_files.read(path).rollouts
        ]
        turns = sum(len(one.own_turns) for one in played)
        assert bool([one for one in played if one.parent is not None]) == (name == "tree_grpo")
        more = line.get("rollout/continuation_steps", 0)
        assert bool(more) == (name == "vineppo")
        episodes = sum(one.parent is None for one in played)
        assert budgets.costs(line, episodes)["steps"] == pytest.approx(turns + more)
    figure = tmp_path / "budgets.png"
    told = subprocess.run(
        [sys.executable, str(STUDIES / "budgets.py"), str(tmp_path), "--figure", str(figure)],
        check=True,
        capture_output=True,
        text=True,
    )
    tables = told.stdout.split("\nAt ")[1:]
    assert [one.split(" ", 1)[1].split(":")[0] for one in tables] == [*budgets.COSTS]
    for one in tables:
        rows = [line for line in one.splitlines() if line.startswith("| ")]
        assert [line.split(" | ")[0] for line in rows[1:]] == ["| GRPO", "| Tree-GRPO", "| VinePPO"]
        assert len({line.count("|") for line in rows}) == 1
    assert figure.stat().st_size > 10_000


@pytest.mark.slow
def test_pairs_of_a_search_are_trained_and_compared_with_their_start(tmp_path, harness_program):
    chosen = {"SEEDS": "1", "STEPS": "1", "DRAWS": "0", "HARNESS": harness_program}
    run = ["bash", str(STUDIES / "dpo_mcts.sh"), str(tmp_path)]
    told = subprocess.run(
        run, env=os.environ | chosen, check=True, capture_output=True, text=True
    ).stdout
    (step,) = [r for r in metrics.read(tmp_path / "dpo-1") if "update/loss" in r]
    assert step["credit/pairs"] > 0
    assert "DPO" in told
    assert "GiGPO" in told, "the recipe of the start"
