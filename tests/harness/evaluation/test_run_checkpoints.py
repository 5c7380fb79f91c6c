"""`harness eval --checkpoint`: the newest, the best, that of a step, or the last N of a run."""

import json
import shutil

import pytest
from click.testing import CliRunner
from evaluation_helpers import CORRIDOR, result

from harness.cli.evaluate import evaluate
from harness.config import Config, EvaluationConfig, ModelConfig, build, to_dict
from harness.evaluation import defaults, run_checkpoints
from harness.evaluation.model_source import find
from harness.types.errors import ConfigError

BY_SCORE = {"checkpoint": {"best": "score"}, "eval": {"split": "valid"}}


def make_run(home, validations, model=None):
    """A run's folder with a checkpoint for each step."""
    values = to_dict(Config())
    values["env"]["id"] = CORRIDOR
    values["agent"] = {"style": "compact", "max_tokens": 4}
    home.mkdir(parents=True)
    (home / "config.json").write_text(json.dumps(values))
    (home / "evaluations").mkdir()
    for step, validation in validations.items():
        checkpoint = home / "checkpoints" / f"step-{step:06d}"
        if model:
            shutil.copytree(model, checkpoint)
        checkpoint.mkdir(parents=True, exist_ok=True)
        described = {"step": step, "validation": validation, "files": {}}
        (checkpoint / "checkpoint.json").write_text(json.dumps(described))
    return home


def note(run, step, success, split="valid"):
    evaluation = {"step": step, "split": split, "success": success, "score": success}
    file = run / "evaluations" / f"step-{step:06d}-{split}.json"
    file.write_text(json.dumps(evaluation))


@pytest.fixture
def run(tmp_path):
    return make_run(
        tmp_path / "runs/demo",
        {
            10: {"success": 0.5, "score": 0.5},
            20: {"success": 0.5, "score": 0.9},
            25: {},
            30: {"success": 0.25, "score": 0.25},
        },
    )


def test_the_newest_the_best_and_that_of_a_step(run):
    chosen = {w: find(str(run), w).step for w in ("newest", "best", "25")}
    assert chosen == {"newest": 30, "best": 10, "25": 25}
    assert find(str(run)).step == 30
    assert run_checkpoints.choose(run, "best", BY_SCORE).step == 20


def test_a_better_evaluation_without_a_checkpoint_is_told(run, caplog):
    note(run, 20, 0.5)
    note(run, 15, 0.9, split="another")
    run_checkpoints.choose(run, "best", {"eval": {"split": "valid"}})
    assert not caplog.text
    note(run, 5, 0.75)
    assert run_checkpoints.choose(run, "best", {"eval": {"split": "valid"}}).step == 10
    assert "better at the steps 5, whose checkpoints were not kept: step 10" in caplog.text


def test_the_last_are_those_with_an_evaluation(run):
    assert run_checkpoints.last_evaluated(run, 2) == [20, 30]
    with pytest.raises(ConfigError, match=r"keeps 3 checkpoints.*checkpoint\.keep=4"):
        run_checkpoints.last_evaluated(run, 4)


def test_what_is_not_there_is_named(run, tmp_path):
    with pytest.raises(ConfigError, match="no checkpoint of step 40: expected one of 10, 20, 25"):
        find(str(run), "40")
    older = make_run(tmp_path / "older", {10: {}})
    with pytest.raises(ConfigError, match="no checkpoint of .* has an evaluation"):
        find(str(older), "best")
    for name in ("owner/model", str(run / "checkpoints/step-000010")):
        with pytest.raises(ConfigError, match="no training run's folder: leave model.checkpoint"):
            find(name, "best")
    for wrong in ("last-2", "", "-1", "oldest"):
        with pytest.raises(ConfigError, match="newest, best or a number of steps"):
            build(EvaluationConfig, {"model": {"checkpoint": wrong}})


@pytest.mark.parametrize("model", [["--model", "expert"], ["--model", "m", "--url", "http://x"]])
@pytest.mark.parametrize("wanted", ["best", "last-2"])
def test_only_a_run_has_checkpoints(model, wanted):
    done = call("--env", "Corridor", *model, "--checkpoint", wanted)
    assert isinstance(done.exception, ConfigError)
    assert "model.checkpoint" in str(done.exception)


def call(*arguments):
    return CliRunner().invoke(evaluate, [str(argument) for argument in arguments])


def test_the_folder_is_named_after_the_checkpoint(run):
    names = {}
    for wanted in ("newest", "best", "20"):
        model = ModelConfig(name=str(run), checkpoint=wanted, backend="hf")
        resolved = defaults.resolve(EvaluationConfig(model=model), find(str(run)).trained)
        names[wanted] = resolved.run.name
    start = "corridor-valid_seen-trained-demo"
    assert names == {"newest": start, "best": f"{start}-best", "20": f"{start}-step000020"}


def test_the_last_are_played_one_by_one_and_the_table_has_their_mean(tmp_path, monkeypatch, policy):
    monkeypatch.chdir(tmp_path)
    policy.save(tmp_path / "model")
    figures = {"success": 0.5}
    make_run(tmp_path / "runs/demo", {10: figures, 20: figures, 30: figures}, tmp_path / "model")
    asked = ["--model", "runs/demo", "--checkpoint", "last-2", "--tasks", 1, "--name", "mine"]
    asked += ["--set", "model.device='cpu'", "--set", "env.max_turns=2"]
    done = call(*asked)
    assert done.exit_code == 0, done.output
    folders = [tmp_path / "evaluations" / f"mine-step0000{step}" for step in (20, 30)]
    assert sorted((tmp_path / "evaluations").iterdir()) == folders
    assert [result(folder)["model"]["step"] for folder in folders] == [20, 30]
    assert "steps 20, 30 of training, mean over 2 steps" in done.output
    shutil.rmtree(folders[1])
    again = call(*asked)
    assert again.exit_code == 0, again.output
    assert "steps 20, 30 of training" in again.output
    printed = json.loads(call(*asked, "--print-config").output)
    assert [one["run"]["name"] for one in printed] == [folder.name for folder in folders]
