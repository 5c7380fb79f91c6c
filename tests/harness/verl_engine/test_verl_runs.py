"""Training in real verl on real Ray, on the CPU; a server of answers stands in for vLLM."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from small_training import small

from harness.runs import checkpoints, metrics
from harness.training import setup

pytestmark = [pytest.mark.verl, pytest.mark.slow]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PYTHON = os.environ.get("AGENTGYMS_VERL_PYTHON", "")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}",
    "VERL_PLATFORM": "cpu",
    "VERL_USE_EXTERNAL_MODULES": "cpu_verl,harness.training.verl.plugin",
    "OMP_NUM_THREADS": "1",
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1",
    "WANDB_MODE": "disabled",
}
ON_CPU = {
    "trainer.device": "cpu",
    "trainer.logger": '["console"]',
    "reward.num_workers": 1,
    "actor_rollout_ref.rollout.name": "cpu_hf",
    "actor_rollout_ref.rollout.free_cache_engine": "false",
    "actor_rollout_ref.rollout.load_format": "auto",
    "actor_rollout_ref.rollout.agent.num_workers": 1,
    "actor_rollout_ref.actor.use_torch_compile": "false",
    "actor_rollout_ref.model.use_remove_padding": "false",
    "actor_rollout_ref.model.override_config.attn_implementation": "sdpa",
    "ray_kwargs.ray_init.address": "local",
    "ray_kwargs.ray_init.num_cpus": 32,
    "ray_kwargs.ray_init.include_dashboard": "false",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
}


def command(folder, name, *overrides, workers=1, **of_verl):
    """Return the command that trains the corridor from a weak warm start."""
    own = ["warmstart.steps=8", "warmstart.episodes=20", "eval.every=0", *overrides]
    own += ["policy.precision=float32"]
    own = [f"run.output='{folder}'", f"run.name={name}", *own]
    many = {"trainer.n_gpus_per_node": workers, "ray_kwargs.ray_init.num_gpus": workers}
    words = [word for one in own for word in ("--set", one)]
    for key, value in {**ON_CPU, **many, **of_verl}.items():
        words += ["--verl", f"{key}={value}"]
    return [PYTHON, "-m", "harness", "train", "corridor-tiny", "--engine", "verl", *words]


def run(words):
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


def peer(*words):
    return run([PYTHON, str(HERE / "verl_peer.py"), *map(str, words)])


def test_settings_and_plug_in_are_known_to_verl():
    peer("names", "corridor-tiny", "alfworld-gigpo-1.5b")
    peer("plugin")


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_rows_have_the_advantages_of_this_harness_to_the_digit(tmp_path, context):
    """Of every estimator that needs no annotator, with rows in any order and verl's padding."""
    own = ("run.steps=1", "run.keep_rollouts=1", f"agent.context={context}")
    trainer = setup.start(small(tmp_path, "own", *own))
    trainer.run()
    (file,) = (trainer.folder.path / "rollouts").iterdir()
    assert int(peer("credits_of", file, context).split()[-1]) >= 20


def test_it_learns_and_its_run_is_one_of_this_harness(tmp_path):
    own = ("run.steps=20", "rollout.tasks_per_step=8", "rollout.group_size=8", "eval.every=20")
    own = (*own, "optimizer.learning_rate=1e-3", "checkpoint.every=20", "checkpoint.keep=1")
    told = run(command(tmp_path, "learns", *own))
    folder = tmp_path / "learns"
    found = metrics.read(folder)
    before, after = (one["eval/valid_seen/success"] for one in found if "update/loss" not in one)
    assert after - before >= 0.3
    steps = [one for one in found if "update/loss" in one]
    assert [one["step"] for one in steps] == list(range(1, 21))
    assert {"rollout/turns", "credit/advantage_std", "time/collect_s"} <= steps[-1].keys()
    assert "held-out tasks" in told
    (saved,) = checkpoints.find_all(folder)
    assert saved.step == 20
    words = [PYTHON, "-m", "harness", "eval", "--model", str(folder), "--tasks", "8"]
    assert "100.0" in run([*words, "--set", f"run.output='{tmp_path}'"])


def test_the_first_updates_gradients_are_those_of_this_harness(tmp_path):
    own = ("run.steps=1", "run.keep_rollouts=1", "checkpoint.every=1", "optimizer.mini_batches=1")
    run(command(tmp_path, "first", *own))
    peer("gradients", tmp_path / "first")


def test_all_estimators_train_on_two_workers(tmp_path):
    of_verl = {"trainer.v1.trainer_mode": "agentgyms_cycle"}
    modules = "cpu_verl,harness.training.verl.plugin,verl_cycle"
    own = ("run.steps=44", "rollout.tasks_per_step=2", "rollout.group_size=3")
    words = command(tmp_path, "cycle", *own, "checkpoint.every=100", workers=2, **of_verl)
    environment = {**ENVIRONMENT, "VERL_USE_EXTERNAL_MODULES": modules}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    steps = [one for one in metrics.read(tmp_path / "cycle") if "update/loss" in one]
    assert [one["credit/estimator"] for one in steps] == [n // 2 for n in range(44)]
    assert all(one["update/loss"] is not None for one in steps)


def test_a_killed_worker_ends_the_run_and_it_goes_on(tmp_path):
    """verl alone would wait for the episodes of a worker that is gone."""
    own = ("run.steps=6", "checkpoint.every=2", "rollout.tasks_per_step=2", "rollout.group_size=2")
    started = subprocess.Popen(
        command(tmp_path, "killed", *own),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    folder = tmp_path / "killed"
    while started.poll() is None and not (folder / "checkpoints" / "step-000002").exists():
        time.sleep(0.2)
    for process in psutil.Process(started.pid).children(recursive=True):
        if "AgentLoopWorker" in process.name() or "AgentLoopWorker" in " ".join(process.cmdline()):
            process.send_signal(signal.SIGKILL)
    told, _ = started.communicate()
    assert started.returncode == 2, told[-6000:]
    assert "harness train --resume" in told
    run([PYTHON, "-m", "harness", "train", "--resume", str(folder)])
    steps = [one["step"] for one in metrics.read(folder) if "update/loss" in one]
    assert steps == [1, 2, 3, 4, 5, 6]
    assert json.loads((folder / "verl.json").read_text())["trainer.total_training_steps"] == 6
