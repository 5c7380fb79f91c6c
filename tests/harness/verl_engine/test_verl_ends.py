"""A run in verl whose worker, server or object store fails ends, and goes on."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from ports import free_port, is_free
from verl_commands import ENVIRONMENT, HERE, PYTHON, ROOT, Training, command, peer

from harness.runs import metrics

pytestmark = [pytest.mark.verl, pytest.mark.slow]


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
    own = ("run.steps=12", "run.keep_rollouts=1", "checkpoint.every=1", "checkpoint.keep=20")
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
    assert before.saved < 12
    training = before.resume()
    assert training.process.wait() == 0, training.told[-6000:]
    steps = [one["step"] for one in metrics.read(training.folder) if "update/loss" in one]
    assert steps == list(range(1, 13))
    settings = json.loads((training.folder / "verl.json").read_text())
    assert settings["trainer.total_training_steps"] == 12
