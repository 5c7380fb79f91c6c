"""The pages on work of one's own, followed word by word in an empty folder."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# (\w+\.\w+)\n")
"""First line of a block that is a file."""


def follow(page, folder, harness_program=None):
    """Write the files and run the commands of a page in their order; return what they print.

    The commands are those of an installation, which have their own folder on the path, but for
    `harness`, which is the program given; without it none runs.
    """
    printed = ""
    for kind, text in BLOCK.findall((ROOT / page).read_text()):
        if kind == "bash":
            if harness_program:
                printed += shell(text, folder, harness_program)
        else:
            (folder / NAMED.match(text)[1]).write_text(text)
    return printed


def shell(script, folder, harness_program):
    """Run a script in a folder, and return what it prints."""
    scripts = sysconfig.get_path("scripts")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AGENTGYMS_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), scripts, kept["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", f'harness() {{ {harness_program} "$@"; }}\n{script}'],
        cwd=folder,
        env={**kept, "PATH": path, "PYTHONPATH": str(ROOT), "TQDM_DISABLE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def _installed():
    if not (Path(sysconfig.get_path("scripts")) / "harness").exists():
        pytest.skip("the programs are not installed")


def success(folder, split="test"):
    """Return a run's success at each evaluation of a split, by step."""
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    figures = ((r["step"], r.get(f"eval/{split}/success")) for r in records)
    return {step: figure for step, figure in figures if figure is not None}


def test_the_environment_of_the_page_keeps_the_contract(tmp_path):
    follow("docs/own_environment.md", tmp_path)
    body = (tmp_path / "guess.py").read_text().partition("class ")[2].partition("\ngym.")[0]
    assert sum(bool(line.strip()) for line in body.splitlines()) <= 40
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "check.py"], cwd=tmp_path, env=env, check=True, timeout=120)
    told = "import guess_atoms as g; from agentgyms import testing; "
    told += "testing.check_env(g.GuessWithAtoms); testing.check_leaks(g.GuessWithAtoms)"
    subprocess.run([sys.executable, "-c", told], cwd=tmp_path, env=env, check=True, timeout=120)


@pytest.mark.slow
@pytest.mark.usefixtures("_installed")
def test_an_environment_from_the_page_is_trained_and_evaluated(tmp_path, harness_program):
    printed = follow("docs/own_environment.md", tmp_path, harness_program)
    assert "guess:mine/Guess-v0, 5 turns at most" in printed
    assert "nothing is missing" in printed
    figures = success(tmp_path / "runs/guess")
    assert figures[40] >= figures[0] + 0.1
    played = {}
    for name in ("trained", "random", "expert"):
        result = json.loads((tmp_path / f"evaluations/{name}/result.json").read_text())
        played[name] = result["figures"]["success"]["mean"]
    assert played["random"] < played["trained"] <= played["expert"] == 1
    assert (tmp_path / "report.html").exists()
    told = dict(re.findall(r"^(evaluate|report): +(.+)$", printed, re.MULTILINE))
    assert "guess" in shell(f"{told['evaluate']} --tasks 2", tmp_path, harness_program)
    assert "test" in shell(told["report"], tmp_path, harness_program)


@pytest.mark.slow
@pytest.mark.usefixtures("_installed")
def test_an_estimator_from_the_page_is_compared_and_trained(tmp_path, harness_program):
    printed = follow("docs/own_credit.md", tmp_path, harness_program)
    lines = [line for line in (tmp_path / "my_credit.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 20
    assert "fading" in (tmp_path / "credit.html").read_text()
    assert "fading" in (tmp_path / "credit.csv").read_text()
    kept = json.loads((tmp_path / "runs/fading/config.json").read_text())["method"]
    assert (kept["name"], kept["credit"]["fade"]) == ("my_credit:fading", 0.8)
    assert "my_credit:fading" in printed
    assert (tmp_path / "curve.png").exists()
    for name in ("grpo", "fading"):
        figures = success(tmp_path / "runs" / name, "train")
        assert figures[0] < 0.4
        assert figures[5] < 0.9, "there is room for a difference"
