"""Training runs of a tiny Qwen, end to end, and what a kill may not change."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner
from small_training import SMALL, last_checkpoint, lines, run, small

from agentgyms.core.errors import AgentGymsError
from harness import config as configs
from harness.cli.main import main
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.model import tiny
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.prompts import load
from harness.rollouts.agent import Agent
from harness.rollouts.demonstrations import Demonstration, Demonstrator
from harness.rollouts.env_pool import EnvPool
from harness.runs import checkpoints, training_state
from harness.runs.runfolder import RunFolder
from harness.training import saving, setup
from harness.training.learner import Learner
from harness.training.sft import fine_tune, learning_rate_factor
from harness.types.errors import CheckpointError, ConfigError, ResultError, TrainingError
from harness.types.task_draws import TaskDraw


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Ten uninterrupted steps."""
    folder = tmp_path_factory.mktemp("whole")
    settings = ("run.steps=10", "checkpoint.every=5", "log.outputs=['tensorboard','pictures']")
    return run(small(folder, "whole", *settings))


def test_a_run_leaves_everything_behind(whole):
    path = whole.folder.path
    for name in (
        "config.json",
        "provenance.json",
        "metrics.jsonl",
        "curve.png",
        "training.png",
        "table.md",
    ):
        assert (path / name).stat().st_size > 0
    assert list((path / "tensorboard").glob("events*"))
    records = lines(whole)
    steps = [r for r in records if "update/loss" in r]
    assert [r["step"] for r in steps] == list(range(1, 11))
    assert any(r["update/grad_norm"] > 0 for r in steps)
    assert {r["step"] for r in records if "eval/valid_seen/success" in r} == {0, 2, 4, 6, 8, 10}
    evaluation = json.loads((path / "evaluations/step-000010-valid_seen.json").read_text())
    task_ids = [e["task_id"] for e in evaluation["episodes"]]
    assert sorted(task_ids) == sorted(set(task_ids))
    assert len(task_ids) == 8
    assert [c.step for c in checkpoints.find_all(path)] == [0, 5, 10], "0 is the best"


@pytest.mark.slow
def test_equal_seeds_give_equal_runs_and_others_do_not(whole, tmp_path):
    again = run(small(tmp_path, "again", "run.steps=2"))
    assert lines(again)[:4] == lines(whole)[:4]
    other = run(small(tmp_path, "other", "run.steps=2", "run.seed=1"))
    assert lines(other)[1] != lines(whole)[1]


@pytest.mark.slow
def test_rl_improves_what_the_warm_start_left(tmp_path):
    """The corridor is learned: from a weak warm start to nearly always."""
    overrides = [
        "run.steps=30",
        "warmstart.steps=24",
        "eval.every=0",
        "rollout.tasks_per_step=8",
        "optimizer.learning_rate=1e-3",
        "method.reward_scale=2.0",
    ]
    trainer = run(small(tmp_path, "learns", *overrides))
    rates = [r["rollout/success"] for r in lines(trainer) if "rollout/success" in r]
    assert sum(rates[:3]) / 3 < 0.75
    assert sum(rates[-3:]) / 3 > sum(rates[:3]) / 3 + 0.2


@pytest.mark.slow
def test_a_kl_penalty_holds_on_to_the_reference_also_after_resuming(tmp_path):
    config = small(
        tmp_path, "kl", "run.steps=4", "checkpoint.every=2", "method.loss.kl_coefficient=0.1"
    )
    trainer = run(config)
    figures = [r["update/kl_reference"] for r in lines(trainer) if "update/kl_reference" in r]
    assert figures[-1] > 0
    reference = Policy.load(str(trainer.folder.path / "reference"), "cpu")
    resumed = setup.resume(trainer.folder.path)
    for a, b in zip(
        resumed.learner.reference.model.parameters(), reference.model.parameters(), strict=True
    ):
        assert torch.equal(a, b)


def test_a_model_from_a_folder_trains_like_any_other(whole, tmp_path):
    start = str(last_checkpoint(whole).folder)
    overrides = [f"policy.model='{start}'", "warmstart.episodes=0", "run.steps=1"]
    trainer = run(small(tmp_path, "from_folder", *overrides))
    assert lines(trainer)[-1]["step"] == 1


def test_method_grpo_runs_too(tmp_path):
    trainer = run(small(tmp_path, "grpo", "method.name='grpo'", "method.credit={}", "run.steps=1"))
    assert trainer.step == 1


def further(folder, *words):
    return CliRunner().invoke(
        main, ["train", "--resume", str(folder), *words], catch_exceptions=False
    )


def test_a_finished_run_that_is_trained_further_is_one_that_was_longer_from_the_start(
    whole, tmp_path
):
    short = run(small(tmp_path, "short", "run.steps=1", "checkpoint.every=5", "eval.every=2"))
    ended = further(short.folder.path, "--set", "run.steps=2")
    assert ended.exit_code == 0, ended.output
    assert short.folder.config().run.steps == 2
    last = [record for record in lines(whole) if record["step"] == 2]
    assert [record for record in lines(short) if record["step"] == 2] == last
    assert [record["step"] for record in lines(short)] == [0, 1, 1, 2, 2]


def test_a_resumed_run_takes_no_other_setting_and_no_end_before_its_last_step(whole, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(whole.folder.path, path, symlinks=True)
    before = (path / "config.json").read_bytes()
    for setting, told in {
        "method.name=grpo": r"got --set method.name=grpo: only run.steps can be changed",
        "run.steps=9": r"run.steps is 9, and 10 steps of .* are saved: give 10 or more",
        "run.steps=many": r"run.steps must be",
    }.items():
        with pytest.raises(ConfigError, match=told):
            further(path, "--set", setting)
        assert (path / "config.json").read_bytes() == before
    assert further(path, "--set", "run.steps=10").exit_code == 0, "nothing is held"


def test_checkpoints_are_whole_or_not_there(whole, tmp_path):
    path = tmp_path / "run"
    saved = saving.begin(path, 1, whole.policy, whole.learner.optimizer, keep=2).finish()
    (path / "checkpoints/.step-000002.partial").mkdir()
    assert checkpoints.find_all(path) == [saved]
    (saved.folder / "trainer.pt").write_bytes(b"cut off")
    with pytest.raises(CheckpointError, match="cannot be used"):
        training_state.read(saved.folder, whole.policy, whole.learner.optimizer)
    (saved.folder / "checkpoint.json").write_text("{")
    with pytest.raises(CheckpointError, match="is damaged"):
        checkpoints.find_all(path)
    with pytest.raises(CheckpointError, match="is no run"):
        setup.resume(tmp_path / "nothing")


def test_a_run_without_settings_that_came_later_goes_on(whole, tmp_path):
    """What its configuration lacks is filled in as for a new run."""
    path = tmp_path / "old"
    shutil.copytree(whole.folder.path, path)
    config = json.loads((path / "config.json").read_text())
    assert config["policy"]["precision"] == "float32"  # kept, for another machine may take another
    del config["agent"]["context"], config["method"]["rows"], config["method"]["annotators"]
    for name in ("dynamic_sampling", "enough_members", "enough_share", "enough_turns"):
        del config["rollout"][name]
    del config["optimizer"]["epochs"], config["method"]["loss"]["aggregation"]
    (path / "config.json").write_text(json.dumps(config))
    resumed = setup.resume(path)
    assert resumed.config == whole.config
    config["method"]["loss"]["nothing"] = 1
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="cannot go on.*no hyperparameter 'nothing'"):
        setup.resume(path)


def test_a_damaged_run_says_what_is_damaged(whole, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(whole.folder.path, path, symlinks=True)
    damaged = [checkpoint.folder for checkpoint in checkpoints.find_all(path)]
    weights = damaged[-1] / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert setup.resume(path).step == 5
    for folder in damaged:
        (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"no checkpoint of .* is whole: .* is missing"):
        setup.resume(path)
    (path / "config.json").write_text('{"run":')
    with pytest.raises(CheckpointError, match=r"config.json is damaged"):
        setup.resume(path)


def test_a_wrong_setting_does_not_use_up_the_name_of_the_run(tmp_path):
    for wrong in ("env.kwargs.foo=1", "eval.split='no'", "method.credit.gamma='x'"):
        with pytest.raises(AgentGymsError):
            setup.start(small(tmp_path, "name", wrong))
    assert not (tmp_path / "name").exists()
    config = small(tmp_path, "name")
    RunFolder.from_config(config).create(config)
    with pytest.raises(ConfigError, match="holds a run already: delete"):
        setup.start(config)


@pytest.mark.slow
def test_gradient_checkpointing_changes_no_number(whole, tmp_path):
    overrides = ["policy.gradient_checkpointing=true", "run.steps=1"]
    start = [f"policy.model='{last_checkpoint(whole).folder}'", "warmstart.episodes=0"]
    first = run(small(tmp_path, "with", *start, *overrides))
    second = run(small(tmp_path, "without", *start, "run.steps=1"))
    layers = first.policy.model.base_model.layers
    assert all(layer.gradient_checkpointing for layer in layers)
    assert lines(first) == lines(second)


@pytest.mark.slow
def test_final_splits_are_whole_at_both_ends_and_short_between(tmp_path):
    overrides = ["eval.every=1", "eval.final_splits=['valid_seen']", "run.steps=2"]
    trainer = run(small(tmp_path, "final", "eval.split_tasks=2", *overrides))
    counts = [len(evaluation["episodes"]) for evaluation in trainer.folder.evaluations()]
    assert counts == [8, 2, 8]


def test_eval_tasks_bounds_every_split_at_every_step(tmp_path):
    splits = "eval.final_splits=['valid_seen', 'valid_unseen']"
    overrides = ["eval.tasks=3", "eval.split_tasks=2", splits, "run.steps=0", "eval.every=1"]
    trainer = run(small(tmp_path, "bounded", *overrides))
    counts = {one["split"]: len(one["episodes"]) for one in trainer.folder.evaluations()}
    assert counts == {"valid_seen": 3, "valid_unseen": 3}
    own = trainer.config.eval
    assert own.count("valid_seen", final=False) == 2
    assert configs.replace(own, tasks=1).count("valid_seen", final=False) == 1
    assert configs.EvalConfig().count("valid_seen", final=True) is None


def test_a_step_without_credit_logs_no_means(policy):
    learner = Learner(policy, None, configs.OptimizerConfig(), "clipped", {}, 1.0)
    figures = learner.update([Sample((1, 2), (3,), (-1.0,), 0.0)], step=0, seed=0)
    assert figures["update/tokens"] == 0
    assert "update/entropy" not in figures


def test_a_gradient_that_is_not_finite_stops_the_run(policy):
    learner = Learner(policy, None, configs.OptimizerConfig(), "clipped", {}, 1.0)
    broken = Sample((1, 2), (3,), (-1.0,), float("inf"))
    before = [parameter.clone() for parameter in policy.model.parameters()]
    with pytest.raises(TrainingError, match="lower optimizer.learning_rate"):
        learner.update([broken], step=0, seed=0)
    assert all(map(torch.equal, before, policy.model.parameters()))
    policy.model.zero_grad()


def make_demonstrator(noise):
    agent = Agent(
        ScriptedCompleter(lambda _: ""), load("compact", "agentgyms/Corridor-v0"), Sampling(), 2
    )
    return Demonstrator(agent, "best", noise)


def demonstrate(noise):
    import asyncio

    from harness.rollouts.collect import collect

    demonstrator = make_demonstrator(noise)
    pool = EnvPool("agentgyms/Corridor-v0", 1, 8, oracle=True)
    draws = [TaskDraw(f"train/free-{i:03d}", i) for i in range(0, 20, 2)]
    rollouts = asyncio.run(collect(pool, draws, demonstrator, seed=0))
    return demonstrator, [t for r in rollouts for t in r.turns]


def test_foreign_actions_are_context_and_never_targets():
    pure, turns = demonstrate(0.0)
    assert [d.answer for d in pure.demonstrations] == [t.action for t in turns]
    noisy, turns = demonstrate(0.4)
    assert len(noisy.demonstrations) < len(turns)
    assert {d.answer for d in noisy.demonstrations} <= {"right", "open door"}
    assert any("left" in t.action for t in turns)
    with pytest.raises(ConfigError, match="noise must be in"):
        make_demonstrator(1.0)


def test_fine_tuning_learns_the_demonstrations():
    demonstrations = [
        Demonstration([{"role": "user", "content": f"say {word}"}], word)
        for word in ("left", "right")
    ]
    tokenizer = tiny.make_tokenizer(["say left", "say right"] * 4, 300)
    size = configs.TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32)
    policy = Policy(tiny.make_model(size, tokenizer, 0), tokenizer, "cpu")
    settings = configs.WarmstartConfig(episodes=1, steps=60, batch_size=8, learning_rate=1e-2)
    told = []
    loss = fine_tune(
        policy,
        demonstrations,
        settings,
        seed=0,
        micro_batch_tokens=999,
        on_step=lambda *one: told.append(one),
    )
    assert told[0][0] > 3
    assert all(tokens > settings.batch_size for _, tokens in told)
    assert loss < 0.1
    with pytest.raises(ConfigError, match="no demonstrations"):
        fine_tune(policy, [], settings, seed=0, micro_batch_tokens=999)


def test_the_learning_rate_rises_and_falls():
    factors = [learning_rate_factor(step, 100) for step in range(100)]
    assert factors[0] == 0.1
    assert factors[9] == factors[60] == 1.0
    assert 0 < factors[99] < 0.05


def test_the_command_line(tmp_path):
    runner = CliRunner()
    overrides = [f"run.output='{tmp_path}'", "run.name=cli", "run.steps=1", "eval.tasks=2", *SMALL]
    sets = [part for o in overrides for part in ("--set", o)]
    result = runner.invoke(main, ["train", "corridor-tiny", *sets], catch_exceptions=False)
    assert result.exit_code == 0
    assert "curve:" not in result.output  # no pictures in log.outputs
    assert "| valid_seen | 1 |" in result.output
    assert "| valid_seen | 1 |" in runner.invoke(main, ["report", str(tmp_path / "cli")]).output
    assert "corridor-tiny" in runner.invoke(main, ["recipes"]).output
    shown = runner.invoke(main, ["train", "corridor-tiny", "--print-config", "--set", "run.seed=9"])
    assert json.loads(shown.output)["run"]["seed"] == 9
    assert json.loads(shown.output)["method"]["credit"]["gamma"] == 0.95
    assert runner.invoke(main, ["train"]).exit_code == 2
    run_folder = str(tmp_path / "cli")
    for extra in (["--seeds", "2"], ["--print-config"], ["corridor-tiny"]):
        assert runner.invoke(main, ["train", "--resume", run_folder, *extra]).exit_code == 2
    with pytest.raises(ResultError, match="neither an evaluation nor a training run"):
        runner.invoke(main, ["report", str(tmp_path)], catch_exceptions=False)


@pytest.mark.slow
def test_errors_end_in_one_line(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "harness", "train", "corridor-tiny", "--set", "run.sead=1"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("error: unknown configuration key run.sead")
    assert "Traceback" not in result.stderr
