"""The examples: short, with the commands that run them, and each of them is run."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CLIENTS = sorted((ROOT / "examples" / "clients").glob("*.py"))
"""tests/docs/test_adapter_blocks.py and the tests of TRL and of the gateway run these."""
BY_HAND = "train_by_hand.py"


def run(name, *arguments):
    """Return what an example prints; its errors are the test's."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("path", [*EXAMPLES, *CLIENTS], ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(path):
    source = path.read_text()
    assert source.count("\n") <= (150 if path.name == BY_HAND else 59)
    about = ast.get_docstring(ast.parse(source))
    assert re.match(r"[A-Z]\w+s .*\.\n\n", about), "the first line says what it shows"
    found = path.relative_to(ROOT)
    assert f"python {found}" in about or f"cd {found.parent}\n" in about
    known = (ROOT / "pyproject.toml").read_text()
    for extra in re.findall(r"\.\[(\w+)\]", about):
        assert f"\n{extra} = [" in known


@pytest.mark.slow
def test_the_own_estimator_trains_with_the_command_of_its_docstring():
    about = ast.get_docstring(ast.parse((ROOT / "examples/own_estimator.py").read_text()))
    (command,) = re.findall(r"PYTHONPATH=.*\\\n.*", about)
    python = command.replace("harness", f"{shlex.quote(sys.executable)} -m harness")
    shown = subprocess.run(
        ["bash", "-c", f"{python} --dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr[-3000:]
    assert "own_estimator:fewer_turns" in shown.stdout


def test_the_straight_lines_are_straight():
    """No class and no function but one of two lines: it is read from top to bottom."""
    tree = ast.parse((ROOT / "examples" / BY_HAND).read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [len(function.body) for function in functions] == [2]


def test_own_environment():
    shown = run("own_environment.py").splitlines()
    assert [line.rpartition(" ")[2] for line in shown] == ["1.", "0."]
    assert "Jug b holds 4 of 5 litres." in shown[0]


def test_own_estimator():
    title, *rows = [line.split() for line in run("own_estimator.py").splitlines()]
    assert title[-3:] == ["grpo", "gigpo", "fewer_turns"]
    assert len(rows) == 13
    early, late = float(rows[0][-1]), float(rows[3][-1])
    assert early > late > 0 > float(rows[8][-1])  # GRPO's do not tell the first two apart
    assert rows[0][-3] == rows[3][-3]


def test_evaluate():
    shown = run("evaluate.py")
    rates = re.findall(r"^(\w+): (\S+)% of 40 tasks, 95 % interval (\S+)% to (\S+)%$", shown, re.M)
    assert [name for name, *_ in rates] == ["expert", "random"]
    for _, *figures in rates:
        rate, low, high = map(float, figures)
        assert low <= rate <= high
    folders = re.findall(r"^  (\S+)$", shown, re.MULTILINE)
    assert all((Path(folder) / "recordings.jsonl").is_file() for folder in folders)
    assert len(folders) == 2


@pytest.mark.slow
def test_train_by_hand_learns():
    """The bars are three deviations below: eight seeds rose by 51 points (12), to 91 % (13)."""
    shown = run(BY_HAND)
    found = [int(rate) for rate in re.findall(r"^step +\d+: success +(\d+)% ", shown, re.MULTILINE)]
    assert len(found) == 25
    first, last = map(int, re.search(r"success: (\d+)% in .*, (\d+)% in", shown).groups())
    assert first == pytest.approx(sum(found[:3]) / 3, abs=1)
    assert last - first > 15
    assert last > 52
