"""Training in real verl on real Ray, on the CPU; a server of answers stands in for vLLM."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from ports import free_port, is_free
from small_training import small

from harness.runs import checkpoints, metrics
from harness.training import setup

pytestmark = [pytest.mark.verl, pytest.mark.slow]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PYTHON = os.environ.get("AGENTGYMS_VERL_PYTHON", "")
HARNESS = [PYTHON, "-m", "harness"]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}",
    "VERL_PLATFORM": "cpu",
    "VERL_USE_EXTERNAL_MODULES": "cpu_verl,harness.training.verl.plugin",
    "OMP_NUM_THREADS": "1",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
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
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
}

ALONE = {"address": "local", "num_cpus": 32, "include_dashboard": "false"}


def command(folder, name, *overrides, workers=1, address=None, **of_verl):
    """Return the command that trains the corridor from a weak warm start.

    Args:
        folder: The run's folder.
        name: The run's name.
        *overrides: Settings that differ from the recipe's.
        workers: The number of processes that learn.
        address: A Ray cluster's address; None starts one.
        **of_verl: Settings of verl.
    """
    own = ["warmstart.steps=8", "warmstart.episodes=20", "eval.every=0", *overrides]
    own += ["policy.precision=float32"]
    own = [f"run.output='{folder}'", f"run.name={name}", *own]
    many = {"trainer.n_gpus_per_node": workers}
    if address is None:
        many |= {f"ray_kwargs.ray_init.{key}": value for key, value in ALONE.items()}
        many["ray_kwargs.ray_init.num_gpus"] = workers
    else:
        many["ray_kwargs.ray_init.address"] = address
    words = [word for one in own for word in ("--set", one)]
    for key, value in {**ON_CPU, **many, **of_verl}.items():
        words += ["--verl", f"{key}={value}"]
    return [*HARNESS, "train", "corridor-tiny", "--engine", "verl", *words]


def run(words):
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


def peer(*words):
    return run([PYTHON, str(HERE / "verl_peer.py"), *map(str, words)])


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
    """This harness gained 0.59, standard deviation 0.12, over five seeds of these settings."""
    own = ("run.steps=14", "rollout.tasks_per_step=8", "rollout.group_size=6", "eval.every=14")
    own = (*own, "env.max_turns=8", "method.reward_scale=2.0", "method.credit.norm='mean'")
    own = (*own, "optimizer.learning_rate=5e-4", "checkpoint.every=14", "checkpoint.keep=1")
    told = run(command(tmp_path, "learns", *own, "warmstart.steps=6"))
    folder = tmp_path / "learns"
    found = metrics.read(folder)
    assert len([one for one in found if "eval/valid_seen/success" in one]) == 2
    steps = [one for one in found if "update/loss" in one]
    assert [one["step"] for one in steps] == list(range(1, 15))
    success = [one["rollout/success"] for one in steps]
    assert sum(success[-3:]) / 3 - sum(success[:2]) / 2 >= 0.2, success
    assert {"rollout/turns", "credit/advantage_std", "time/collect_s"} <= steps[-1].keys()
    assert "held-out tasks" in told
    (saved,) = checkpoints.find_all(folder)
    assert saved.step == 14
    words = [*HARNESS, "eval", "--model", str(folder), "--tasks", "8", "--set", "env.max_turns=8"]
    run([*words, "--set", f"run.output='{tmp_path}'"])
    (result,) = tmp_path.rglob("result.json")
    assert json.loads(result.read_text())["figures"]["success"]["mean"] >= 0.5


def test_all_estimators_train_on_two_workers(tmp_path):
    of_verl = {"trainer.v1.trainer_mode": "agentgyms_cycle"}
    modules = "cpu_verl,harness.training.verl.plugin,verl_cycle"
    own = ("run.steps=22", "rollout.tasks_per_step=2", "rollout.group_size=3")
    words = command(tmp_path, "cycle", *own, "checkpoint.every=100", workers=2, **of_verl)
    environment = {**ENVIRONMENT, "VERL_USE_EXTERNAL_MODULES": modules}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    steps = [one for one in metrics.read(tmp_path / "cycle") if "update/loss" in one]
    assert [one["credit/estimator"] for one in steps] == list(range(22))
    assert all(one["update/loss"] is not None for one in steps)


class Training:
    """A command that trains in a folder, and what it says."""

    def __init__(self, folder, words):
        self.folder = folder
        self._log = folder.with_name(f"output-{len(list(folder.parent.iterdir()))}")
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                words, env=ENVIRONMENT, stdout=log, stderr=subprocess.STDOUT
            )

    def resume(self):
        assert self.process.poll() is not None
        return Training(self.folder, [*HARNESS, "train", "--resume", str(self.folder)])

    @property
    def saved(self):
        """The last step that verl has saved."""
        file = self.folder / "verl" / "latest_checkpointed_iteration.txt"
        return int(file.read_text() or 0) if file.exists() else 0

    def reach(self, step):
        while self.process.poll() is None and self.saved < step:
            time.sleep(0.1)
        assert self.process.poll() is None, self.told[-6000:]

    def error(self):
        """Return the last line that it says; it cannot go on."""
        assert self.process.wait() == 2, self.told[-6000:]
        return self.told.splitlines()[-1]

    @property
    def told(self):
        return self._log.read_text()


class Servers:
    """Two servers of the corridor."""

    def __init__(self):
        self.urls = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
        self._running = [self._started(url) for url in self.urls]

    def _started(self, url):
        words = [sys.executable, "-m", "env_servers", "corridor", "--port", url.rpartition(":")[2]]
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)
        process.stdout.readline()  # its address: it answers
        return process

    def kill(self, number):
        self._running[number].kill()
        self._running[number].wait()
        self._running[number].stdout.close()

    def start(self, number):
        self._running[number] = self._started(self.urls[number])


@pytest.fixture(scope="module")
def servers():
    both = Servers()
    yield both
    both.kill(0)
    both.kill(1)


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster with the smallest object store, which may not spill to disk; its address."""
    port = free_port(2)
    words = [Path(PYTHON).with_name("ray"), "start", "--head", "--block", f"--port={port}"]
    words += [f"--ray-client-server-port={port + 1}", "--include-dashboard=false"]
    words += ["--num-cpus=32", "--num-gpus=1", f"--object-store-memory={75 << 20}"]
    full = {**ENVIRONMENT, "RAY_local_fs_capacity_threshold": "0"}  # every disk counts as full
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as place:
        process = subprocess.Popen([*words, f"--temp-dir={place}"], env=full)
        try:
            while is_free(port):
                assert process.poll() is None
                time.sleep(0.1)
            yield f"127.0.0.1:{port}", psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="module")
def without_a_worker(cluster, servers, tmp_path_factory):
    """A run in that cluster: one of its servers dies, then a worker."""
    place, (address, ray) = tmp_path_factory.mktemp("ends"), cluster
    own = ("run.steps=16", "run.keep_rollouts=1", "checkpoint.every=1", "checkpoint.keep=20")
    own = (*own, "rollout.tasks_per_step=2", "optimizer.mini_batches=1")
    own = (*own, f"env.kwargs.url={json.dumps(servers.urls)}", "env.kwargs.patience={lost_s=1}")
    training = Training(place / "run", command(place, "run", *own, address=address))
    training.reach(1)
    servers.kill(0)
    training.reach(3)
    for process in ray.children(recursive=True):
        if "AgentLoopWorker" in " ".join([process.name(), *process.cmdline()]):
            process.kill()
    return training, training.error()


@pytest.fixture(scope="module")
def without_a_server(without_a_worker, servers):
    """The run goes on, and its last server dies."""
    before, _ = without_a_worker
    training = before.resume()
    training.reach(before.saved + 1)
    servers.kill(1)
    return training, training.error()


@pytest.fixture(scope="module")
def without_room(without_a_server, servers, cluster):
    """The run goes on with one server again, and the object store of its cluster is filled."""
    before, _ = without_a_server
    servers.start(1)
    words = [PYTHON, str(HERE / "verl_peer.py"), "fill", cluster[0]]
    filler = subprocess.Popen(words, env=ENVIRONMENT, stdin=subprocess.PIPE)
    try:
        training = before.resume()
        training.reach(before.saved + 1)
        filler.stdin.write(b"fill\n")
        filler.stdin.flush()
        return training, training.error()
    finally:
        filler.kill()
        filler.communicate()


def test_the_first_updates_gradients_are_those_of_this_harness(without_a_worker):
    peer("gradients", without_a_worker[0].folder)


def test_a_killed_worker_ends_the_run(without_a_worker):
    """verl alone would wait for its episodes. A server that is gone before is no end."""
    told = without_a_worker[1]
    assert "a worker is gone" in told
    assert f"`harness train --resume {without_a_worker[0].folder}` goes on" in told


def test_a_run_ends_with_its_last_server(without_a_server, servers):
    told = without_a_server[1]
    assert "every episode of the step was lost" in told
    assert all(url in told for url in servers.urls)


def test_a_full_object_store_ends_the_run(without_room):
    assert "Ray's object store is full" in without_room[1]
    assert "--object-store-memory" in without_room[1]


def test_the_run_goes_on_after_each_of_them(without_room):
    before, _ = without_room
    assert before.saved < 16
    training = before.resume()
    assert training.process.wait() == 0, training.told[-6000:]
    steps = [one["step"] for one in metrics.read(training.folder) if "update/loss" in one]
    assert steps == list(range(1, 17))
    settings = json.loads((training.folder / "verl.json").read_text())
    assert settings["trainer.total_training_steps"] == 16
