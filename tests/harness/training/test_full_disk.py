"""A disk that is full while a run is written or drawn."""

import errno
import os

import pytest
from run_contents import left
from small_training import small

from harness.reporting import run_report
from harness.reporting.curves import training_curves
from harness.runs import checkpoints
from harness.runs.metrics import MetricsLog
from harness.training import setup
from harness.types.errors import ResultError, TrainingError


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def quick(tmp_path, name):
    settings = ("run.steps=2", "eval.tasks=2", "warmstart.steps=2", "checkpoint.every=1")
    return small(tmp_path, name, *settings, "log.outputs=['pictures']")


def test_a_disk_that_is_full_while_drawing_costs_the_pictures_alone(tmp_path, monkeypatch, caplog):
    setup.start(quick(tmp_path / "whole", "run")).run()
    with monkeypatch.context() as patch:
        patch.setattr(training_curves, "draw_success", full)
        setup.start(quick(tmp_path, "run")).run()
        with pytest.raises(ResultError, match="run cannot be reported: No space left on device"):
            run_report.write(tmp_path / "run")
    assert "No space left on device; draw it later with: harness report" in caplog.text
    assert left(tmp_path / "run") == left(tmp_path / "whole" / "run")
    run_report.write(tmp_path / "run")
    assert (tmp_path / "run" / "curve.png").is_file()


def test_a_picture_that_cannot_be_drawn_again_is_still_the_old_one(tmp_path, monkeypatch):
    setup.start(quick(tmp_path, "run")).run()
    files = {path: path.read_bytes() for path in (tmp_path / "run").glob("*.*")}
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResultError, match="No space left"):
        run_report.write(tmp_path / "run")
    assert {path: path.read_bytes() for path in files} == files


def test_a_disk_that_is_full_while_figures_are_written_is_told_in_one_line(tmp_path, monkeypatch):
    trainer = setup.start(quick(tmp_path, "run"))
    write = MetricsLog.write

    def write_until_full(self, step, values):
        if step == 2 and "update/loss" in values:
            full()
        write(self, step, values)

    monkeypatch.setattr(MetricsLog, "write", write_until_full)
    with pytest.raises(
        TrainingError, match=r"run cannot be written: No space.*\nStep 1 of 2 is saved"
    ):
        trainer.run()
    assert checkpoints.newest(tmp_path / "run").step == 1
