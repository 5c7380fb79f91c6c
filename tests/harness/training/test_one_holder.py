"""One process at a time trains a run."""

import pytest
from lock_holder import locked
from run_contents import left
from small_training import small

from harness.runs import metrics
from harness.runs.folder_lock import LOCK
from harness.training import setup
from harness.types.errors import ConfigError, FolderInUse


def quick(tmp_path, *overrides):
    return small(
        tmp_path, "run", "run.steps=2", "eval.tasks=2", "warmstart.steps=2", "eval.every=9",
        "checkpoint.every=1", *overrides
    )  # fmt: skip


def test_a_second_process_neither_begins_nor_resumes_a_run(tmp_path):
    config = quick(tmp_path)
    folder = tmp_path / "run"
    with locked(folder) as pid, pytest.raises(FolderInUse, match=f"in use by process {pid} on "):
        setup.start(config)
    assert [path.name for path in folder.iterdir()] == [LOCK]
    setup.start(config).run()
    before = left(folder)
    with locked(folder) as pid, pytest.raises(FolderInUse, match=f"in use by process {pid} on "):
        setup.resume(folder)
    assert left(folder) == before
    setup.resume(folder).run()
    assert left(folder) == before
    with pytest.raises(ConfigError, match="holds a run already"):
        setup.start(config)


def test_a_run_that_was_taken_over_writes_no_step_twice(tmp_path):
    """As two processes on a file system whose locks hold on one machine only."""
    trainer = setup.start(quick(tmp_path))
    take = trainer.train_step

    def taken_over():
        if trainer.step == 1:
            (tmp_path / "run" / LOCK).write_text('{"host": "b", "pid": 7, "started": "now"}')
        return take()

    trainer.train_step = taken_over
    with pytest.raises(FolderInUse, match="taken over by process 7 on b, since now"):
        trainer.run()
    setup.resume(tmp_path / "run").run()
    steps = [r["step"] for r in metrics.read(tmp_path / "run") if "update/loss" in r]
    assert steps == [1, 2]


def test_a_stopped_run_lets_go_of_its_folder(tmp_path):
    trainer = setup.start(quick(tmp_path))

    def train_step():
        raise ZeroDivisionError

    trainer.train_step = train_step
    with pytest.raises(ZeroDivisionError):
        trainer.run()
    with locked(tmp_path / "run"):
        pass
