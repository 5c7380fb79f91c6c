"""Bars in a file are lines: one within seconds, then now and then, also while work is silent."""

import io
import re
import time

import pytest

from agentgyms.data import progress_bar
from agentgyms.data.progress_bar import ProgressBar, working


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(progress_bar, "FIRST_S", 0.1)
    monkeypatch.setattr(progress_bar, "EVERY_S", 0.2)
    monkeypatch.setattr(progress_bar, "_BEAT_S", 0.02)
    monkeypatch.setattr(ProgressBar, "_next_line", None)


def test_silent_work_says_that_it_goes_on():
    file = io.StringIO()
    said = iter(["one", *["two"] * 1000])
    bar = ProgressBar(
        total=3, desc="play", unit="tasks", file=file, disable=False, beside=lambda: next(said)
    )
    time.sleep(0.5)
    bar.close()
    lines = file.getvalue().splitlines()
    assert 2 <= len(lines) <= 3
    assert all(re.fullmatch(r"play: 0 of 3 tasks, 00:00 so far, (one|two)", line) for line in lines)
    time.sleep(0.3)
    assert file.getvalue().splitlines() == lines  # the thread has ended


def test_several_bars_together_say_no_more_than_one():
    file = io.StringIO()
    bars = [ProgressBar(total=3, desc=name, file=file, disable=False) for name in "ab"]
    time.sleep(0.35)
    for bar in bars:
        bar.close()
    assert 1 <= len(file.getvalue().splitlines()) <= 2


def test_work_without_a_length_has_its_time(capsys):
    with working("converting x") as show:
        time.sleep(0.2)
        show("waiting")
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "converting x: 00:00 so far"
    assert lines[-1] == "waiting: 00:00 so far"


def test_work_that_is_not_shown_says_nothing(capsys):
    with working("converting x", is_shown=False):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
