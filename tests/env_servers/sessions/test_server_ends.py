"""How a server ends that has workers, batches under way and idle connections."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

pytestmark = pytest.mark.slow

WORKER = "worker_env:test/Worker-v0"


@pytest.fixture
def process(request) -> Iterator[subprocess.Popen[str]]:
    grace = getattr(request, "param", 1)
    started = subprocess.Popen(
        [sys.executable, "-m", "env_servers", WORKER, "--port=0", f"--grace={grace}"],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "AGENTGYMS_LOG_FORMAT": "json",
            "PYTHONFAULTHANDLER": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield started
    started.kill()
    started.communicate()


class Client:
    """Sessions on a server, over one connection."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._url = process.stdout.readline().strip().rpartition(" at ")[2]
        self._http = requests.Session()
        made = self.batch("create", [{}] * 2)
        self.ids = [result["session_id"] for result in made]
        self.batch("reset", [{"session_id": id_, "seed": 1} for id_ in self.ids])
        self.turn = 0

    def batch(self, operation, items):
        reply = self._http.post(f"{self._url}/v1/batch/{operation}", json={"items": items})
        return reply.json()["results"]

    def step(self, action):
        self.turn += 1
        return self.batch(
            "step", [{"session_id": id_, "action": action, "turn": self.turn} for id_ in self.ids]
        )

    def hang(self):
        """Begin a batch that does not come back."""

        def wait():
            with suppress(requests.ConnectionError):
                self.step("hang")

        threading.Thread(target=wait, daemon=True).start()
        metrics = ""
        while "agentgyms_requests_in_flight 2.0" not in metrics:
            metrics = requests.get(f"{self._url}/metrics", timeout=60).text


def engines(client) -> list[int]:
    return [int(result["observation"]) for result in client.step("x")]


def assert_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while alive := [pid for pid in pids if _runs(pid)]:
        assert time.monotonic() < deadline, f"{alive} outlived the server"
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_sigterm_ends_workers_and_waits_for_no_idle_connection(process):
    client = Client(process)
    pids = engines(client)
    assert all(map(_runs, pids))
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert time.monotonic() - begun < 6
    assert_gone(pids)
    assert process.stderr is not None
    messages = [json.loads(line)["message"] for line in process.stderr]
    assert messages == ["stopping: requests may take 1 s to finish"]


def test_sigterm_ends_it_although_a_batch_hangs(process):
    client = Client(process)
    pids = engines(client)
    client.hang()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert_gone(pids)
    assert process.stderr is not None
    assert "1 requests were cut off" in process.stderr.read()


@pytest.mark.parametrize("process", [600], indirect=True)
def test_a_second_sigterm_ends_it_at_once(process):
    client = Client(process)
    pids = engines(client)
    client.hang()
    process.send_signal(signal.SIGTERM)
    if not select.select([process.stderr], [], [], 60)[0]:
        process.send_signal(signal.SIGABRT)  # it shows where its threads are
    told = process.stderr.readline()  # two signals that come together count as one
    assert "stopping" in told, told + process.stderr.read()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert_gone(pids)


def test_sigkill_leaves_no_worker(process):
    pids = engines(Client(process))
    process.kill()
    process.wait(5)
    assert_gone(pids)
