"""Training in real verl on real Ray, on the CPU."""

import json
import subprocess

import pytest
from small_training import small
from verl_commands import ENVIRONMENT, HARNESS, command, peer, run

from harness import credit
from harness.credit.registry import needs
from harness.runs import checkpoints, metrics
from harness.training import setup

pytestmark = [pytest.mark.verl, pytest.mark.slow]


def test_settings_and_plug_in_are_known_to_verl():
    peer("names", "corridor-tiny", "alfworld-gigpo-1.5b", "+", "plugin")


def test_rows_have_the_advantages_of_this_harness_to_the_digit(tmp_path):
    """Of every estimator that needs no annotator, with rows in any order and verl's padding."""
    words = []
    for context in ("window", "transcript"):
        own = ("run.steps=1", "run.keep_rollouts=1", f"agent.context={context}")
        trainer = setup.start(small(tmp_path, context, *own))
        trainer.run()
        (file,) = (trainer.folder.path / "rollouts").iterdir()
        words += ["credits_of", file, context, "+"]
    tried = [int(line) for line in peer(*words).splitlines() if line.isdigit()]
    assert len(tried) == 2
    assert min(tried) >= 20


def test_it_learns_and_its_run_is_one_of_this_harness(tmp_path):
    """From this start this harness gains 0.73, standard deviation 0.05, over ten seeds."""
    # The start is weak with this seed; with others it solves up to 81 %, which leaves no room.
    own = ("run.seed=1", "run.steps=14", "rollout.tasks_per_step=8", "rollout.group_size=6")
    own = (*own, "env.max_turns=8", "method.reward_scale=2.0", "method.credit.norm='mean'")
    own = (*own, "optimizer.learning_rate=3e-4", "eval.every=14", "checkpoint.every=14")
    own = (*own, "checkpoint.keep=1", "warmstart.steps=6")
    told = run(command(tmp_path, "learns", *own))
    folder = tmp_path / "learns"
    found = metrics.read(folder)
    assert len([one for one in found if "eval/valid_seen/success" in one]) == 2
    steps = [one for one in found if "update/loss" in one]
    assert [one["step"] for one in steps] == list(range(1, 15))
    success = [one["rollout/success"] for one in steps]
    assert sum(success[-3:]) / 3 - sum(success[:2]) / 2 >= 0.4, success
    assert {"rollout/turns", "credit/advantage_std", "time/collect_s"} <= steps[-1].keys()
    assert "held-out tasks" in told
    (saved,) = checkpoints.find_all(folder)
    assert saved.step == 14
    words = [*HARNESS, "eval", "--model", str(folder), "--tasks", "8", "--set", "env.max_turns=8"]
    run([*words, "--set", f"run.output='{tmp_path}'"])
    (result,) = tmp_path.rglob("result.json")
    assert json.loads(result.read_text())["figures"]["success"]["mean"] >= 0.5


def test_all_estimators_without_annotators_train_on_two_workers(tmp_path):
    of_verl = {"trainer.v1.trainer_mode": "agentgyms_cycle"}
    modules = "cpu_verl,harness.training.verl.plugin,verl_cycle"
    count = sum(not needs(name, {}) for name in credit.names())
    own = (f"run.steps={count}", "rollout.tasks_per_step=2", "rollout.group_size=3")
    own = (*own, "env.max_turns=8")
    words = command(tmp_path, "cycle", *own, "checkpoint.every=100", workers=2, **of_verl)
    environment = {**ENVIRONMENT, "VERL_USE_EXTERNAL_MODULES": modules}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    steps = [one for one in metrics.read(tmp_path / "cycle") if "update/loss" in one]
    assert [one["credit/estimator"] for one in steps] == list(range(count))
    assert all(one["update/loss"] is not None for one in steps)
