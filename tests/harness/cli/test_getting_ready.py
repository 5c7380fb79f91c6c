"""A command that imports and checks for long says so, until it announces its work."""

import io
import sys
import time

from agentgyms.data import progress_bar
from agentgyms.data.progress_bar import ProgressBar
from harness.cli.getting_ready import getting_ready


def test_the_time_is_told_until_the_work_is_announced(monkeypatch, capsys):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setattr(progress_bar, "EVERY_S", 0.05)
    monkeypatch.setattr(progress_bar, "_BEAT_S", 0.02)
    monkeypatch.setattr(ProgressBar, "_next_line", None)
    with getting_ready() as announce:
        began = time.monotonic()
        while not file.getvalue():
            assert time.monotonic() - began < 60
            time.sleep(0.01)
        announce("method  gigpo")
        lines = file.getvalue().splitlines()
        time.sleep(0.2)
    assert file.getvalue().splitlines() == lines
    assert all(line.startswith("getting ready: 00:") for line in lines)
    assert capsys.readouterr().out == "method  gigpo\n"
