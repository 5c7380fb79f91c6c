"""Code from outside the package: methods, losses, annotators, rewards, environments."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.types import plugins

ROOT = Path(__file__).parents[2]
INSTALLED = Path(__file__).parent / "plugin"
"""A folder as pip leaves it: the package, and what it says of itself."""

TINY = (
    "policy.tiny={layers=1, hidden=16, heads=2, feed_forward=16, vocabulary=300, max_length=512}",
    "policy.device='cpu'",
    "run.threads=1",
    "run.steps=2",
    "env.max_turns=4",
    "rollout.tasks_per_step=2",
    "warmstart.episodes=6",
    "warmstart.steps=4",
    "eval.tasks=2",
    "checkpoint.every=1",
    "method.loss={}",
)


def harness(*words, cwd, code=0, installed=True):
    """Run the command line in a process of its own, with the plug-in installed or beside it."""
    found = [str(ROOT), *([str(INSTALLED)] if installed else [])]
    done = subprocess.run(
        [sys.executable, "-m", "harness", *map(str, words)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(found)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr
    return done


def settings(*pairs):
    return [word for pair in (*TINY, *pairs) for word in ("--set", pair)]


def steps(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if "update/loss" in line]


@pytest.mark.slow
def test_a_plugin_trains_resumes_evaluates_and_reports(tmp_path):
    listed = harness("methods", cwd=tmp_path).stdout
    assert re.search(r"^toy +toy_credit +surprise +toy_loss +nobody 2030$", listed, re.MULTILINE)
    chosen = settings(
        "method.name='toy'",
        "run.name='toy'",
        "method.reward='toy_progress'",
        "method.credit={weight=0.5}",
        "method.annotators={surprise={scale=2.0}}",
        "env.id='ToyCorridor-v0'",
    )
    harness("train", "corridor-tiny", *chosen, cwd=tmp_path)
    folder = tmp_path / "runs/toy"
    assert [record["surprise/steps"] for record in steps(folder)] == [1, 2]
    assert all(record["update/toy"] > 0 for record in steps(folder))
    kept = json.loads((folder / "config.json").read_text())["method"]
    assert kept["credit"] == {"weight": 0.5}
    assert kept["annotators"] == {"surprise": {"scale": 2.0}}
    assert kept["loss"] == {"strength": 1.0}
    whole = steps(folder)
    for later in (*folder.glob("checkpoints/step-000002*"), folder / "checkpoints/best"):
        subprocess.run(["rm", "-r", later], check=False)
    harness("train", "--resume", folder, cwd=tmp_path)
    own = ("time/", "memory/", "cost/")
    same = [{k: v for k, v in r.items() if not k.startswith(own)} for r in whole]
    assert [{k: v for k, v in r.items() if not k.startswith(own)} for r in steps(folder)] == same
    words = ("--backend", "hf", "--tasks", 2, "--name", "trained", "--set", "model.device=cpu")
    harness("eval", "--model", folder, *words, cwd=tmp_path)
    assert "| 2 |" in harness("report", folder, cwd=tmp_path).stdout
    assert (folder / "curve.png").exists()
    reported = harness("report", tmp_path / "evaluations/trained", cwd=tmp_path).stdout
    assert "ToyCorridor" in reported


@pytest.mark.slow
def test_a_recipe_names_its_plugins(tmp_path):
    """A module beside the recipe, found by PYTHONPATH, is kept in the run's settings."""
    (tmp_path / "mine.py").write_text((INSTALLED / "toy_credit/__init__.py").read_text())
    recipe = "extends = 'corridor-tiny'\n[run]\nplugins = ['mine']\n[method]\nname = 'toy'\n"
    (tmp_path / "mine.toml").write_text(recipe)
    chosen = settings("run.name='mine'", "run.steps=1")
    harness("train", "mine.toml", *chosen, cwd=tmp_path, installed=False)
    folder = tmp_path / "runs/mine"
    assert json.loads((folder / "config.json").read_text())["run"]["plugins"] == ["mine"]
    harness("train", "--resume", folder, cwd=tmp_path, installed=False)


WRONG = [
    (["method.name='toys'"], "unknown method 'toys': expected .*did you mean toy?"),
    (["method.name='nowhere:toy'"], "plug-in 'nowhere' cannot be imported: ModuleNotFound"),
    (["method.name='wrong_plugins:gone'"], "the module wrong_plugins has no 'gone'"),
    (["method.name='wrong_plugins:HELLO'"], "'wrong_plugins:HELLO' is no method: it is 'hell"),
    (["method.name='wrong_plugins:no_numbers'"], "must return finite numbers, one for each"),
    (["method.name='wrong_plugins:too_few'"], "for 4 rows it returned array"),
    (["method.name='wrong_plugins:without_arguments'"], "cannot use its settings: TypeError"),
    (["run.plugins=['nowhere']"], "the plug-in 'nowhere' cannot be imported"),
    (["method.reward='nothing'"], "unknown reward 'nothing': expected one of .*toy_progress"),
    (["method.name='toy'", "method.loss={power=2}"], "no hyperparameter 'power'"),
]
"""Settings, and what the refusal says."""

ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from harness.cli import main
for words in json.load(sys.stdin):
    sys.argv, told, code = ["harness", *words], io.StringIO(), 0
    with contextlib.redirect_stderr(told):
        try:
            main.run()
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, told.getvalue()]))
"""
"""Runs commands in one process, which imports torch once."""


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """The exit status and error output of a training command with each of `WRONG`."""
    folder = tmp_path_factory.mktemp("wrong")
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(INSTALLED)])},
        input=json.dumps([["train", "corridor-tiny", *settings(*given)] for given, _ in WRONG]),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not (folder / "runs").exists()
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_plugin_ends_in_one_line(number, refusals):
    code, told = refusals[number]
    assert code == 2
    assert re.search(WRONG[number][1], told), told
    said = [line for line in told.strip().splitlines() if "so far" not in line]
    assert len(said) == 1, told  # a slow machine also says that it goes on


@pytest.mark.slow
def test_a_reward_of_a_wrong_length_ends_the_run(tmp_path):
    given = settings("method.reward='wrong_plugins:half_a_reward'", "method.name='reinforce'")
    done = harness("train", "corridor-tiny", *given, cwd=tmp_path, code=2)
    assert "must return" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_example_of_the_page_trains(tmp_path):
    page = (ROOT / "docs/plugins.md").read_text()
    module = re.search(r"```python\n# (\w+)\.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / f"{module[1]}.py").write_text(module[2])
    named = (f"run.plugins=['{module[1]}']", "method.name='centred'", "run.name='mine'")
    chosen = settings(*named, "run.steps=1")
    harness("train", "corridor-tiny", *chosen, cwd=tmp_path, installed=False)
    kept = json.loads((tmp_path / "runs/mine/config.json").read_text())["method"]
    assert kept["credit"] == {"scale": 0.5}


def test_a_plugin_may_look_for_others_while_it_is_imported(monkeypatch):
    loaded = []

    class Entry:
        def __init__(self, name):
            self.name = self.value = name
            self.dist = None

        def load(self):
            plugins.load_installed()
            loaded.append(self.name)

    found = [Entry("one"), Entry("two")]
    monkeypatch.setattr(plugins, "_not_loaded", lambda: found)
    plugins.load_installed()
    plugins.load_installed()
    assert sorted(loaded) == ["one", "two"]


@pytest.mark.slow
def test_estimators_need_no_registration(tmp_path):
    chosen = settings("method.name='toy_credit:plain'", "run.name='plain'")
    done = harness("train", "corridor-tiny", *chosen, "--print-config", cwd=tmp_path)
    assert json.loads(done.stdout)["method"]["name"] == "toy_credit:plain"


@pytest.mark.slow
def test_a_file_alone_gets_no_reward_imported(tmp_path):
    """The settings of a stranger's run name code; `harness credit` does not import it."""
    folder = tmp_path / "run"
    (folder / "rollouts").mkdir(parents=True)
    method = {"reward": "wrong_plugins:half_a_reward", "reward_scale": 1.0}
    (folder / "config.json").write_text(json.dumps({"method": method}))
    rollout = {"task_id": "t", "turns": [{"action": "a", "reward": 1}]}
    (folder / "rollouts/step-000001.jsonl").write_text(json.dumps(rollout))
    done = harness("credit", folder, cwd=tmp_path, code=2)
    assert "give it with --reward wrong_plugins:half_a_reward" in done.stderr
