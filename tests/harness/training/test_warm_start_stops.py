"""A warm start that a signal stops goes on bit for bit; a start that fails leaves nothing."""

import os
import signal

import pytest
from run_contents import left
from small_training import small

from harness.runs import metrics
from harness.training import setup, sft
from harness.types.errors import AgentGymsError, ConfigError, TrainingStopped

STEPS = ["run.steps=1", "eval.tasks=2", "warmstart.steps=8", "warmstart.episodes=4"]


def stopping(monkeypatch, after, number=signal.SIGINT):
    """Send a signal after a step of the warm start."""
    taken, take = [], sft._optimizer_step

    def step(*given):
        taken.append(1)
        if len(taken) == after:
            os.kill(os.getpid(), number)
        return take(*given)

    monkeypatch.setattr(sft, "_optimizer_step", step)
    return taken


def left_of(folder):
    """What a run has come to; of adapters the weights alone, for they name their base's folder."""
    if not (folder / "base").exists():
        return left(folder)
    weights = sorted(folder.glob("checkpoints/step-*/adapter_model.safetensors"))
    repeated = [metrics.repeatable(record) for record in metrics.read(folder)]
    return [path.read_bytes() for path in weights], repeated


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["policy.lora.rank=2", "policy.lora.dropout=0.1"]])
def test_a_stopped_warm_start_goes_on_bit_for_bit(tmp_path, monkeypatch, more):
    whole = small(tmp_path, "whole", *STEPS, *more)
    setup.start(whole).run()
    broken = small(tmp_path / "other", "whole", *STEPS, *more)
    folder = tmp_path / "other" / "whole"
    for after in (3, 2):  # of 8
        with monkeypatch.context() as patched:
            taken = stopping(patched, after)
            with pytest.raises(TrainingStopped) as stopped:
                setup.resume(folder) if folder.exists() else setup.start(broken)
        assert len(taken) == after
        assert stopped.value.exit_code == 128 + signal.SIGINT
        assert f"go on with: harness train --resume {folder}" in str(stopped.value)
        assert not (folder / "checkpoints").exists()
        with pytest.raises(ConfigError, match="holds a run already: resume it with --resume"):
            setup.start(broken)
    with monkeypatch.context() as patched:
        taken = stopping(patched, after=0)
        setup.resume(folder).run()
    assert len(taken) == 8 - 3 - 2
    assert not (folder / "warmstart").exists()
    assert left_of(folder) == left_of(tmp_path / "whole")


def test_a_signal_after_the_last_step_of_the_warm_start_loses_nothing(tmp_path, monkeypatch):
    config = small(tmp_path, "run", *STEPS)
    with monkeypatch.context() as patched:
        stopping(patched, after=8)
        with pytest.raises(TrainingStopped):
            setup.start(config)
    with monkeypatch.context() as patched:
        assert stopping(patched, after=0) == []
        setup.resume(tmp_path / "run").run()


def test_a_signal_before_anything_is_learned_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        return []

    monkeypatch.setattr("harness.training.warm_start.TaskSampler.draw", interrupted)
    with pytest.raises(TrainingStopped, match="nothing is left of the run") as stopped:
        setup.start(small(tmp_path / "new", "run", *STEPS))
    assert stopped.value.exit_code == 130
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("there", [[], ["mine.txt"]])
def test_a_failed_start_leaves_nothing_and_what_was_there_before(tmp_path, monkeypatch, there):
    folder = tmp_path / "runs" / "run"
    for name in there:
        folder.mkdir(parents=True)
        (folder / name).touch()
    config = small(tmp_path / "runs", "run", *STEPS)
    with monkeypatch.context() as patched:
        patched.setattr(sft, "_optimizer_step", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            setup.start(config)
    assert (tmp_path / "runs").exists() == bool(there)
    assert sorted(path.name for path in folder.glob("*")) == there
    setup.start(config)


def test_a_damaged_warm_start_is_named(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        stopping(patched, after=2)
        with pytest.raises(TrainingStopped):
            setup.start(small(tmp_path, "run", *STEPS))
    for name in ("trainer.pt", "weights.pt", "losses.json"):
        (tmp_path / "run" / "warmstart" / name).write_bytes(b"{")
        with pytest.raises(AgentGymsError, match=name) as damaged:
            setup.resume(tmp_path / "run")
        assert "\n" not in str(damaged.value)
