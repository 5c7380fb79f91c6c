"""`harness train --seeds`, `--methods` and `--sweep`: several runs in one call, and again."""

import json
import shutil
import signal

import pytest
from click.testing import CliRunner
from small_training import SMALL

from agentgyms.core.errors import AgentGymsError
from harness import config as configs
from harness.cli.main import main
from harness.preflight import planning
from harness.preflight.defaults import resolve
from harness.runs import checkpoints, metrics
from harness.runs.runfolder import RunFolder
from harness.training import series
from harness.types.errors import ConfigError, TrainingStopped


def train(folder, *arguments, steps=1, name="s"):
    changes = [f"run.output='{folder}'", f"run.name={name}", "eval.tasks=2", *SMALL]
    sets = [part for one in [*changes, f"run.steps={steps}"] for part in ("--set", one)]
    return CliRunner().invoke(
        main, ["train", "corridor-tiny", *sets, *arguments], catch_exceptions=False
    )


def steps_of(folder):
    return [metrics.repeatable(record) for record in metrics.read(folder)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two seeds of one recipe, and what was printed."""
    folder = tmp_path_factory.mktemp("seeds")
    return folder, train(folder, "--seeds", "2")


def test_every_seed_has_its_folder_and_the_tables_follow(trained):
    folder, result = trained
    assert result.exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["s-seed0", "s-seed1"]
    assert f"run 2 of 2: {folder}/s-seed1 (new)" in result.output
    assert "training seeds 0, 1" in result.output
    seeds = [json.loads((p / "config.json").read_text())["run"]["seed"] for p in folder.iterdir()]
    assert sorted(seeds) == [0, 1]
    first, second = steps_of(folder / "s-seed0"), steps_of(folder / "s-seed1")
    assert first[1] != second[1]


def test_a_run_of_a_series_is_the_run_alone(trained, tmp_path):
    """What an earlier run of the process left behind changes nothing."""
    folder, _ = trained
    assert train(tmp_path, "--set", "run.seed=1", name="alone").exit_code == 0
    assert steps_of(tmp_path / "alone") == steps_of(folder / "s-seed1")


def test_the_same_command_skips_what_is_finished_and_resumes_the_rest(trained, tmp_path):
    folder, _ = trained
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for last in (tmp_path / "s-seed1/checkpoints").glob("step-000001"):
        shutil.rmtree(last)
    before = (tmp_path / "s-seed0/metrics.jsonl").stat()
    config = json.loads((tmp_path / "s-seed0/config.json").read_text())
    for name in ("s-seed0", "s-seed1"):  # as if they had been made here
        config["run"] |= {"name": name, "seed": int(name[-1]), "output": str(tmp_path)}
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    result = train(tmp_path, "--seeds", "3")
    assert result.exit_code == 0
    states = ("s-seed0 (finished)", "s-seed1 (to resume)", "s-seed2 (new)")
    for number, state in enumerate(states, 1):
        assert f"run {number} of 3: {tmp_path}/{state}" in result.output
    assert (tmp_path / "s-seed0/metrics.jsonl").stat() == before
    assert steps_of(tmp_path / "s-seed1") == steps_of(folder / "s-seed1")
    assert [c.step for c in checkpoints.find_all(tmp_path / "s-seed1")][-1] == 1
    assert "training seeds 0, 1, 2" in result.output


def test_a_bad_value_is_refused_before_the_first_run_and_leaves_nothing(tmp_path):
    out = tmp_path / "runs"
    for value in ("method.credit.gamma=0.9,7", "eval.split=valid_seen,nowhere", "run.steps=1,x"):
        with pytest.raises(AgentGymsError):
            train(out, "--sweep", value)
        assert not out.exists()


def test_a_folder_with_other_settings_is_refused_before_the_first_run(trained):
    folder, _ = trained
    kept = sorted(folder.rglob("*"))
    with pytest.raises(
        ConfigError, match=r"s-seed0 holds a run with other settings: run.steps"
    ) as e:
        train(folder, "--seeds", "2", steps=3)
    assert f"train it to step 3 with --resume {folder}/s-seed0 --set run.steps=3" in str(e.value)
    assert sorted(folder.rglob("*")) == kept


def test_a_run_keeps_its_longest_answer_on_another_machine(tmp_path):
    tiny = configs.load("corridor-tiny", [f"run.output='{tmp_path}'"])
    config = configs.replace(tiny, agent=configs.replace(tiny.agent, max_tokens=None))
    folder = RunFolder.from_config(config)
    folder.create(resolve(config, "cuda"))
    folder.lock.release()
    assert resolve(config, "cpu").agent.answer_tokens < folder.config().agent.answer_tokens
    assert series.state(config) == series.UNFINISHED


def test_a_dry_run_tells_the_plan_and_every_folder(trained, tmp_path):
    folder, _ = trained
    result = train(folder, "--seeds", "3", "--dry-run")
    assert result.exit_code == 0
    assert f"{folder}/s-seed1 (finished)" in result.output
    assert f"{folder}/s-seed2 (new)" in result.output
    assert "s-seed2: 1 steps, seed 2" in result.output
    lacking = train(tmp_path, "--sweep", "policy.model=tiny,/nowhere/model", "--dry-run")
    assert lacking.exit_code == 2
    assert lacking.output.count("/nowhere/model is not") == 1
    assert "/nowhere/model" in lacking.output.partition("the runs cannot start:")[2]
    assert not list(tmp_path.iterdir())
    shown = json.loads(train(tmp_path, "--sweep", "env.max_turns=3,4", "--print-config").output)
    assert [one["env"]["max_turns"] for one in shown] == [3, 4]
    assert train(tmp_path, "--seeds", "2", "--resume", str(folder)).exit_code == 2


def test_a_dry_run_counts_the_checkpoints_of_all_runs(tmp_path, monkeypatch):
    """Three seeds keep the newest or the newest two, each with the best; one more is written."""
    words = ["--dry-run", "--seeds", "3", "--sweep", "checkpoint.keep=1,2"]
    one = planning.plan(configs.load("corridor-tiny", SMALL)).checkpoint
    needed = (3 * 2 + 3 * 3 + 1) * one
    enough = train(tmp_path, *words)
    assert f"{planning.gigabytes(needed)} for those of all 6 runs" in enough.output
    assert "nothing is missing: the runs can start" in enough.output
    for free in (needed - 1, one):
        usage = shutil.disk_usage(tmp_path)._replace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, usage=usage: usage)
        told = train(tmp_path, *words)
        assert told.exit_code == 2
        assert told.output.count("GB of checkpoints are kept") == 1


@pytest.mark.slow
def test_a_signal_stops_the_series_and_the_same_command_goes_on(tmp_path, monkeypatch):
    from harness.training.trainer import Trainer

    step = Trainer.train_step

    def stopped(self):
        if self.config.run.seed == 1:
            signal.raise_signal(signal.SIGTERM)
        return step(self)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "train_step", stopped)
        with pytest.raises(TrainingStopped):
            train(tmp_path, "--seeds", "2", steps=2)
    result = train(tmp_path, "--seeds", "2", steps=2)
    assert f"s-seed0 ({series.FINISHED})" in result.output
    assert f"s-seed1 ({series.UNFINISHED})" in result.output
    assert steps_of(tmp_path / "s-seed1")[-1]["step"] == 2


METHODS = ("--methods", "grpo,gigpo", "--seeds", "2", "--jobs", "2")


def test_jobs_are_for_several_runs(tmp_path):
    assert train(tmp_path, "--jobs", "2").exit_code == 2
    assert train(tmp_path, "--methods", "grpo", "--resume", str(tmp_path)).exit_code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_processes_train_methods_as_this_one_does_and_a_table_fills(tmp_path):
    beside = train(tmp_path, *METHODS, "--set", "run.threads=1")
    assert beside.exit_code == 0
    for number in (1, 2, 3):
        assert f"{number} of 4 runs\n**Over training seeds**" in beside.output
    assert "**How many seeds would settle this?**" in beside.output
    alone = ["method.name=grpo", "run.seed=1", "run.threads=1"]
    train(tmp_path, *(part for one in alone for part in ("--set", one)), name="alone")
    assert steps_of(tmp_path / "alone") == steps_of(tmp_path / "s-grpo-seed1")
    again = train(tmp_path, *METHODS, "--set", "run.threads=1")
    assert again.output.count("(finished)") == 4


@pytest.mark.slow
def test_a_failed_process_is_told_and_the_others_are_trained(tmp_path):
    blocked = tmp_path / "s-gigpo-seed0"
    blocked.mkdir(parents=True)
    (blocked / "evaluations").symlink_to("/proc/nothing")
    with pytest.raises(AgentGymsError, match=f"(?s){blocked}: .*cannot be written"):
        train(tmp_path, *METHODS[:2], "--jobs", "2")
    assert series.state(RunFolder(tmp_path / "s-grpo-seed0").config()) == series.FINISHED
