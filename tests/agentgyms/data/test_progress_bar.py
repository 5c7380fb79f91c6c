"""Bars in a file are lines: one within seconds, then now and then, also while work is silent."""

import io
import re
import sys
import time

import pytest

from agentgyms.data import progress_bar
from agentgyms.data.progress_bar import ProgressBar, working


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(progress_bar, "EVERY_S", 0.2)
    monkeypatch.setattr(progress_bar, "_BEAT_S", 0.02)
    monkeypatch.setattr(ProgressBar, "_next_line", None)


def wait_for(count, file):
    """Wait until a file has so many lines."""
    began = time.monotonic()
    while len(file.getvalue().splitlines()) < count:
        assert time.monotonic() - began < 60
        time.sleep(0.01)


def test_silent_work_says_that_it_goes_on():
    file = io.StringIO()
    said = iter(["one", *["two"] * 100_000])
    began = time.monotonic()
    bar = ProgressBar(
        total=3, desc="play", unit="tasks", file=file, disable=False, beside=lambda: next(said)
    )
    wait_for(3, file)
    bar.close()
    lines = file.getvalue().splitlines()
    assert len(lines) <= 1 + (time.monotonic() - began) / progress_bar.EVERY_S
    shape = r"play: 0 of 3 tasks, \d\d:\d\d so far, (one|two)"
    assert all(re.fullmatch(shape, line) for line in lines)
    time.sleep(0.3)
    assert file.getvalue().splitlines() == lines  # the thread has ended


def test_several_bars_together_say_no_more_than_one():
    file = io.StringIO()
    began = time.monotonic()
    bars = [ProgressBar(total=3, desc=name, file=file, disable=False) for name in "ab"]
    wait_for(2, file)
    for bar in bars:
        bar.close()
    assert (
        len(file.getvalue().splitlines()) <= 1 + (time.monotonic() - began) / progress_bar.EVERY_S
    )


def test_short_work_in_an_old_process_says_nothing(monkeypatch):
    monkeypatch.setattr(progress_bar, "_BEAT_S", 1000.0)
    monkeypatch.setattr(progress_bar, "EVERY_S", 1000.0)
    monkeypatch.setattr(ProgressBar, "_next_line", 0.0)  # a line may be written at once
    file = io.StringIO()
    with ProgressBar(total=3, desc="short", file=file, disable=False) as bar:
        bar.update(3)
    assert file.getvalue() == ""


def test_work_without_a_length_has_its_time(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with working("converting x") as show:
        wait_for(1, file)
        show("waiting")
        wait_for(len(file.getvalue().splitlines()) + 1, file)
    lines = file.getvalue().splitlines()
    assert re.fullmatch(r"converting x: \d\d:\d\d so far", lines[0])
    assert re.fullmatch(r"waiting: \d\d:\d\d so far", lines[-1])


def test_work_that_is_not_shown_says_nothing(capsys):
    with working("converting x", is_shown=False):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
