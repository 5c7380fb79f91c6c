"""The examples that train in a cluster: their programs accept them, and a job goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from slurm_cluster import cluster, wait_until

ROOT = Path(__file__).parents[1]
SBATCH = ROOT / "examples" / "train.sbatch"
SKY = ROOT / "examples" / "train.sky.yaml"
TINY = "corridor-tiny"

HELD = """
import time
from pathlib import Path

def reward(rollout):
    while any('"step": 1,' in one.read_text() for one in Path("runs").glob("*/metrics.jsonl")):
        if Path("signalled").exists():
            break
        time.sleep(0.1)
    return [turn.reward for turn in rollout.turns]
"""
"""The second step ends once the run was told to stop, so it cannot end before that."""

TASK = """
import json, sys
import sky
task = sky.Task.from_yaml(sys.argv[1])
wanted = [one.to_yaml_config() for one in task.resources]
kept = {path: store.mode.value for path, store in task.storage_mounts.items()}
print(json.dumps([task.num_nodes, task.envs, task.setup, task.run, wanted, kept]))
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """What SkyPilot makes of the file."""
    done = subprocess.run(
        [os.environ["AGENTGYMS_DEPLOY_PYTHON"], "-c", TASK, SKY],
        env=os.environ | {"HOME": str(tmp_path_factory.mktemp("home"))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.deploy
def test_skypilot_accepts_the_task(task):
    nodes, variables, setup, _, wanted, kept = task
    assert nodes == 1
    assert all(one["use_spot"] for one in wanted)
    assert kept == {variables["RUNS"]: "MOUNT_CACHED"}
    assert "'.[harness,vllm]'" in setup


@pytest.mark.deploy
def test_the_task_trains_and_goes_on(task, tmp_path):
    """Under the name that the task gives the environment stands the one of the tests."""
    _, variables, _, script, _, _ = task
    (tmp_path / "agentgyms").symlink_to(Path(sys.prefix))
    own = {"RECIPE": TINY, "RUNS": str(tmp_path / "runs"), "SKYPILOT_NUM_GPUS_PER_NODE": "1"}

    def run(**more):
        environment = os.environ | variables | own | {"HOME": str(tmp_path)} | more
        return subprocess.run(
            ["bash", "-euc", script], env=environment, capture_output=True, text=True, check=False
        )

    planned = run(ARGS="--dry-run --set run.steps=7")
    assert planned.returncode == 0, planned.stderr[-3000:]
    assert f" {variables['NAME']}: 7 steps" in planned.stdout
    folder = Path(own["RUNS"], variables["NAME"])
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    resumed = run()
    assert resumed.returncode != 0
    assert f"{folder}/config.json is damaged" in resumed.stderr


@pytest.mark.deploy
def test_scripts_are_good_shell(task, tmp_path):
    sections = {"setup": task[2], "run": task[3]}
    for name, text in sections.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{text}")
    lint = Path(os.environ["AGENTGYMS_DEPLOY_PYTHON"]).with_name("shellcheck")
    scripts = [SBATCH, ROOT / "docker" / "lock", *(tmp_path / name for name in sections)]
    done = subprocess.run([lint, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slurm
def test_a_job_of_two_nodes_goes_on_after_the_end_of_its_time(tmp_path_factory, tmp_path):
    with cluster(tmp_path_factory.mktemp("slurm")) as slurm:
        slurm.environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        sizes = ("--nodes=2", "--gpus-per-node=1", "--cpus-per-task=1", "--time=60")
        own = ("run.steps=3", "eval.every=0", "checkpoint.every=100")
        settings = [f"--set={one}" for one in (*own, "method.reward=held:reward")]
        (tmp_path / "held.py").write_text(HELD)
        sbatch = ("sbatch", "--parsable", *sizes, SBATCH, TINY, *settings)
        number = slurm.run(*sbatch, cwd=tmp_path)
        run = tmp_path / "runs" / f"agentgyms-{number}"
        log = tmp_path / f"agentgyms-{number}.log"
        wait_until(lambda: '"step": 1,' in metrics(run) or slurm.has_ended(number))
        slurm.run("scancel", "--batch", "--signal=USR1", number)  # as Slurm does before the end
        wait_until(lambda: "SIGTERM: stopping" in log.read_text() or slurm.has_ended(number))
        (tmp_path / "signalled").touch()
        wait_until(
            lambda: slurm.job(number).get("Reason") == "BeginTime" or slurm.has_ended(number)
        )
        assert "stopped by SIGTERM. Step 2 of 3 is saved" in log.read_text(), log.read_text()
        slurm.run("scontrol", "update", f"JobId={number}", "StartTime=now")  # else in two minutes
        wait_until(lambda: slurm.has_ended(number))
        assert slurm.job(number)["JobState"] == "COMPLETED", log.read_text()
    assert "from step 2 on" in log.read_text()
    lines = [json.loads(line) for line in metrics(run).splitlines()]
    assert [one["step"] for one in lines if "update/loss" in one] == [1, 2, 3]


def metrics(run):
    file = run / "metrics.jsonl"
    return file.read_text() if file.exists() else ""
