"""The mutation tester: its tables name what exists, and its runner tells mutants from originals."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "mutants"
GROUPS = tomllib.loads((FOLDER / "modules.toml").read_text(encoding="utf-8"))
EQUIVALENT = tomllib.loads((FOLDER / "equivalent.toml").read_text(encoding="utf-8"))["mutant"]
ENGINE = "agentgyms/envs/alfworld/engine.py"
SEMANTICS = "tests/agentgyms/envs/alfworld/test_alfworld_semantics.py"
TEST = f"{SEMANTICS}::test_each_of_heating_and_cooling_takes_the_other_one_back[cool-heat]"


@pytest.mark.parametrize("name", GROUPS)
def test_groups_name_modules_and_tests_that_exist(name):
    group = GROUPS[name]
    assert set(group) <= {"modules", "without", "tests", "without_tests"}
    for pattern in (*group["modules"], *group.get("without", ())):
        assert list(ROOT.glob(pattern)), pattern
    for test in (*group["tests"], *group.get("without_tests", ())):
        file, _, function = test.partition("::")
        assert (ROOT / file).exists(), test
        assert not function or f"def {function}(" in (ROOT / file).read_text(), test


@pytest.mark.parametrize("one", EQUIVALENT, ids=lambda one: f"{one['module']}: {one['to']}")
def test_an_equivalent_mutant_is_of_a_line_that_exists(one):
    assert set(one) == {"module", "from", "to", "why"}
    lines = (ROOT / one["module"]).read_text(encoding="utf-8").splitlines()
    wanted = one["from"].splitlines()
    stripped = [line.strip() for line in lines]
    assert set(map(str.strip, wanted)) <= set(stripped)
    assert one["from"] != one["to"]
    assert one["why"].endswith(".")


def test_no_equivalent_mutant_is_noted_twice():
    notes = [(one["module"], one["from"], one["to"]) for one in EQUIVALENT]
    assert len(set(notes)) == len(notes)


@pytest.fixture(scope="module")
def ask():
    command = [sys.executable, str(FOLDER / "runner.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=env, **pipes) as process:

        def answer(**request):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield answer
        process.stdin.close()


def try_mutant(ask, code, timeout_s=300):
    return ask(do="mutant", path=ENGINE, code=code, tests=[TEST], timeout_s=timeout_s)


@pytest.mark.slow
def test_a_mutant_is_noticed_and_no_file_is_changed(ask):
    source = (ROOT / ENGINE).read_text(encoding="utf-8")
    clearing = "        self.bits &= ~(1 << (self.game.layout.cool + o))\n"
    assert source.count(clearing) == 1
    assert try_mutant(ask, source) == {"killed_by": ""}
    assert try_mutant(ask, source.replace(clearing, "")) == {"killed_by": TEST}
    assert try_mutant(ask, source) == {"killed_by": ""}, "a mutant leaves nothing behind"
    assert try_mutant(ask, "raise ValueError")["killed_by"]
    endless = source.replace("    def copy(", "    while True:\n        pass\n\n    def copy(")
    assert try_mutant(ask, endless, timeout_s=5) == {"timeout": True}
    assert (ROOT / ENGINE).read_text(encoding="utf-8") == source


def test_the_baseline_knows_which_tests_run_a_line(ask):
    found = ask(do="baseline", paths=[ENGINE], tests=[TEST], options=[], timeout_s=300)
    assert (found["exit"], found["failed"]) == (0, [])
    assert [test for test, _ in found["tests"]] == [TEST]
    lines = (ROOT / ENGINE).read_text(encoding="utf-8").splitlines()
    ran = {lines[int(number) - 1].strip() for number in found["lines"][ENGINE]}
    assert "self.bits &= ~(1 << (self.game.layout.cool + o))" in ran
    assert "return text.inventory(self)" not in ran
    assert "numpy" in found["packages"]
    assert "agentgyms" not in found["packages"]


def test_a_failing_baseline_is_named(ask):
    missing = ask(
        do="baseline", paths=[], tests=["tests/no_such_test.py"], options=[], timeout_s=99
    )
    assert missing["exit"]
