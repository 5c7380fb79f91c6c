"""A gateway in a process of its own, which is ended, killed and resumed while agents play."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import requests
from fault_proxy import QUICK, SLOW, FaultProxy, Request
from ports import free_port
from process_memory import usage

GROUP_SIZE: Final = 4
TASKS_PER_STEP: Final = 2
TOKEN: Final = "soak"
HEADERS: Final = {"Authorization": f"Bearer {TOKEN}"}
USER: Final = {"messages": [{"role": "user", "content": "Go."}]}

_STARTS_IN_S: Final = 1800.0
_ENDS_IN_S: Final = 600.0
_TERMINATED: Final = 143
_FAULTY_RATE: Final = 0.3
_KEPT_REQUESTS: Final = 1000
_SAID: Final = ("Traceback (most recent call last)", "ERROR:", "nexpected error")
_SETTINGS: Final = (
    *("run.steps=1000000", "run.keep_rollouts=1", "run.threads=1", "log.outputs=[]"),
    *("policy.tiny.layers=1", "policy.tiny.hidden=48", "policy.tiny.heads=4"),
    *("policy.tiny.feed_forward=64", "warmstart.episodes=20", "warmstart.steps=30"),
    *(f"rollout.tasks_per_step={TASKS_PER_STEP}", f"rollout.group_size={GROUP_SIZE}"),
    *("rollout.max_batch=16", "eval.every=100", "eval.tasks=2", "checkpoint.every=10"),
)
_WITH_TTL: Final = """
import signal, sys
from harness.training.gateway import rollout_book

def expire_after(seconds):
    rollout_book.TTL_S, rollout_book._LOOK_S = seconds, seconds / 60

expire_after(float(sys.argv.pop(1)))
signal.signal(signal.SIGUSR1, lambda *_: expire_after(1.0))
from harness.cli.main import run
run()
"""
"""The harness's command line, but abandoned rollouts expire after another time than an hour, and
after a second once the process has got SIGUSR1."""


class GatewayProcess:
    """A gateway, the proxy before it, and what became of it.

    Args:
        folder: For the run and the gateway's log.
        environments: The address of a server of the corridor.
        ttl_s: Seconds after which an abandoned rollout expires.
        restart_s: Seconds that a life lasts before it is ended, while `restarts`.

    Attributes:
        life: Counts up before a process is ended and when the next one answers.
        met: Rollouts of whose requests or replies one met with an accident.
        files: Open files of the first process before anybody came.
    """

    name = "gateway"

    def __init__(self, folder: Path, environments: str, ttl_s: float, restart_s: float) -> None:
        self.folder, self.environments = folder.resolve() / "gateway", environments
        self.log = folder / "gateway.log"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        self.ttl_s, self.restart_s, self.restarts = ttl_s, restart_s, True
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.errors: Counter[str] = Counter()
        self.met: set[str] = set()
        self.life, self.ready_at, self.files = 0, 0.0, 0
        self.is_ready = threading.Event()
        self._rng = random.Random("gateway")
        self._faulty_until, self._kinds = 0.0, QUICK
        self._process: subprocess.Popen[bytes] | None = None
        self.proxy = FaultProxy(self.address, self._fate, read_s=30.0)

    def begin(self) -> None:
        """Start the run, or go on with it; return when it answers."""
        new = ["gateway", "corridor-tiny", "--address", f"127.0.0.1:{self.port}"]
        place = (f"run.output='{self.folder.parent}'", f"run.name='{self.folder.name}'")
        for one in (*_SETTINGS, *place, f"env.kwargs.url='{self.environments}'"):
            new += ["--set", one]
        words = ["train", "--resume", str(self.folder)] if self.life else new
        command = [sys.executable, "-c", _WITH_TTL, str(self.ttl_s), *words]
        with self.log.open("ab") as log:
            tokens = {"AGENTGYMS_GATEWAY_TOKEN": TOKEN}
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | tokens
            )
        give_up = time.monotonic() + _STARTS_IN_S
        while not self._answers():
            code = self._process.poll()
            if code is not None or time.monotonic() > give_up:
                raise RuntimeError(f"the gateway does not start, exit code {code}: see {self.log}")
            time.sleep(0.2)
        self.ready_at = time.monotonic()
        self.files = self.files or self.usage()["files"]
        self.life += 1
        self.is_ready.set()

    def _answers(self) -> bool:
        """Return whether the policy answers: from then on a signal ends the process in order."""
        name = f"first-{self.life}"
        headers = HEADERS | {"X-Group-Id": name}
        chat = f"{self.address}/rollouts/{name}/v1/chat/completions"
        try:
            reply = requests.post(chat, json=USER, headers=headers, timeout=300)
            url = f"{self.address}/v1/rollouts/{name}"
            requests.delete(url, headers=HEADERS, timeout=300)
        except requests.RequestException:
            return False
        return reply.status_code == 200

    def kill(self) -> None:
        """End the process at once, and go on with its run."""
        self._leave_life()
        self.process.kill()
        self.process.wait()
        self.begin()

    def drain(self) -> None:
        """Ask the process to end, and go on with its run."""
        self.end()
        self.begin()

    def end(self) -> None:
        """Ask the process to end; another exit code than that of SIGTERM is an error."""
        self._leave_life()
        self.process.terminate()
        try:
            code: int | str = self.process.wait(_ENDS_IN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = f"none within {_ENDS_IN_S:g} s"
        if code != _TERMINATED:
            self.errors[f"the gateway's exit code was {code}"] += 1

    def _leave_life(self) -> None:
        if self.process.poll() is not None:
            self.errors[f"the gateway ended by itself: exit code {self.process.returncode}"] += 1
        self.is_ready.clear()
        self.life += 1  # before: an agent may notice it at once

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process of this life."""
        assert self._process is not None
        return self._process

    @property
    def has_ended(self) -> bool:
        """Whether the process of this life has ended by itself."""
        return self.is_ready.is_set() and self.process.poll() is not None

    @property
    def age_s(self) -> float:
        """Seconds since the process answered first; 0 while it does not."""
        return time.monotonic() - self.ready_at if self.is_ready.is_set() else 0.0

    def memory(self) -> int:
        """Return the resident memory of the process and that of its children's own, in bytes."""
        taken = self.usage()
        return taken["resident"] + taken["children"]

    def usage(self) -> dict[str, int]:
        """Return how many files and threads the process has, among others."""
        return usage(self.process.pid)

    def status(self) -> dict[str, int]:
        """Return the step and the numbers of rollouts and groups; begin one, so that it looks."""
        with requests.Session() as http:
            http.headers.update(HEADERS)
            url = f"{self.address}/v1/rollouts"
            http.post(f"{url}/look", headers={"X-Group-Id": "look"}, timeout=600)
            http.delete(f"{url}/look", timeout=600)
            found: dict[str, int] = http.get(url, timeout=600).json()
        return found

    def let_expire(self) -> None:
        """Let abandoned rollouts expire soon: nobody plays any more."""
        self.process.send_signal(signal.SIGUSR1)

    def be_faulty(self, seconds: float, *, slow: bool) -> None:
        """Let three requests in ten meet with accidents for some time."""
        self._kinds = SLOW[-1:] if slow else QUICK
        self._faulty_until = time.monotonic() + seconds

    def said(self) -> Counter[str]:
        """Return what the output should not have, with numbers."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return +Counter({f"{words!r} in {self.log}": text.count(words) for words in _SAID})

    def steps(self) -> list[int]:
        """Return the steps of metrics.jsonl in order, without the evaluations."""
        lines = (self.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        records: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [record["step"] for record in records if "update/tokens" in record]

    def learned(self) -> list[list[dict[str, Any]]]:
        """Return the rollouts of each step's file, as they were kept."""
        steps = []
        for path in sorted((self.folder / "rollouts").glob("step-*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                steps.append([json.loads(line) for line in file][1:])
        return steps

    def _fate(self, request: Request) -> str:
        if len(self.proxy.requests) > _KEPT_REQUESTS:
            self.proxy.requests.clear()
        if time.monotonic() >= self._faulty_until or self._rng.random() >= _FAULTY_RATE:
            return "normal"
        self.met.add(request.path.partition("rollouts/")[2].partition("/")[0])
        return self._rng.choice(self._kinds)
