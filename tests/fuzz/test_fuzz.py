"""The fuzzer itself, and 200 inputs of every target."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import fuzz_target
import pytest
from fuzz_target import Broken, Target, TooLong, check
from mutations import mutated

HERE = Path(__file__).parent
SEEDS = [b'{"a": [1, "text", {"b": null}]}', b"[]"]


def planted(run, *errors, steps_per_byte=0):
    return Target("planted", run, errors, lambda: SEEDS, "json", steps_per_byte)


def started(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=1200,
    )


@pytest.mark.parametrize("kind", ["json", "lines", "text", "bytes"])
def test_changes_are_the_same_for_the_same_seed(kind):
    made = [[mutated(random.Random(seed), SEEDS, kind) for seed in range(60)] for _ in (1, 2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 40
    assert max(map(len, made[0])) <= 1 << 16


def test_a_documented_error_is_no_crash_and_another_is():
    def run(data):
        raise KeyError(data) if data == b"k" else ValueError("no JSON")

    check(planted(run, ValueError), b"x")
    with pytest.raises(KeyError):
        check(planted(run, ValueError), b"k")


def test_results_that_differ_are_found():
    drawn = iter(range(9))
    with pytest.raises(Broken, match="gave 0 and then 1"):
        check(planted(lambda data: next(drawn)), b"x")


def test_what_never_ends_is_stopped_after_a_number_of_calls():
    def run(data):
        while True:
            len(data)

    with pytest.raises(TooLong, match="calls of functions"):
        check(planted(run), b"x")


def test_what_never_ends_and_calls_nothing_is_stopped_by_its_cpu_time(monkeypatch):
    monkeypatch.setattr(fuzz_target, "CPU_S", 0.05)

    def run(data):
        while True:
            pass

    with pytest.raises(TooLong, match="CPU time"):
        check(planted(run), b"x")


def test_turns_are_a_minute_at_most():
    from fuzz import slices

    assert slices(30, 60) == [30.0]
    assert slices(120, 60) == [60.0, 60.0]


@pytest.mark.slow
def test_nothing_breaks_in_200_inputs_of_every_target(tmp_path):
    names = sorted(fuzz_target.load())
    done = started(HERE / "worker.py", ",".join(names), tmp_path, "--runs", 200, "--blind")
    assert done.returncode == 0, done.stderr
    found = [json.loads((tmp_path / name / "status.json").read_text()) for name in names]
    assert {one["target"]: one["broken"] for one in found if one["broken"]} == {}
    assert {one["runs"] for one in found} == {200}


@pytest.mark.slow
def test_every_target_takes_one_of_its_seeds():
    for target in fuzz_target.load().values():
        taken = 0
        for data in target.all_seeds():
            try:
                target.run(data)
                taken += 1
            except target.errors:
                pass
        assert taken, target.name


@pytest.mark.slow
def test_what_breaks_is_kept_and_reported(tmp_path):
    """A module of targets that is broken on purpose, in a process of the fuzzer."""
    (tmp_path / "targets_planted.py").write_text(
        "from fuzz_target import target\n"
        "@target(seeds=lambda: [b'abc'], kind='text')\n"
        "def planted(data):\n"
        "    if len(data) > 30:\n"
        "        bytearray(1 << 40)\n"
        "    return data.decode('utf-8', 'replace')[2]\n"
    )
    (tmp_path / "sitecustomize.py").write_text(
        "import fuzz_target\nfuzz_target.MODULES = ('targets_planted',)\n"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(HERE), *sys.path])
    }
    command = [sys.executable, str(HERE / "fuzz.py"), "--runs", "300", "--blind"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path / "out")],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    report = (tmp_path / "out" / "report.md").read_text()
    assert report in done.stdout
    assert "| planted | 300 |" in report
    assert "planted: IndexError in targets_planted.py, planted" in report
    assert "planted: MemoryError in targets_planted.py, planted" in report
    kept = sorted((tmp_path / "out" / "planted" / "broken").glob("*.txt"))
    again = [*command[:2], "--again", "planted", str(kept[0].with_suffix(""))]
    done = subprocess.run(again, env=environment, capture_output=True, text=True, timeout=300)
    assert "Error" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs atheris")
def test_coverage_guides_the_changes_where_atheris_is_installed(tmp_path):
    done = started(HERE / "worker.py", "sokoban_levels", tmp_path, "--runs", 3000)
    assert done.returncode == 0, done.stderr
    status = json.loads((tmp_path / "sokoban_levels" / "status.json").read_text())
    assert status["broken"] == {}
    assert status["runs"] == 3000
    assert status["corpus"] > 5


def test_nothing_that_is_fuzzed_sleeps(monkeypatch):
    monkeypatch.setattr(time, "sleep", time.sleep)
    fuzz_target.never_sleep()
    time.sleep(1e6)
    with pytest.raises(ValueError, match="slept"):
        time.sleep(float("nan"))
