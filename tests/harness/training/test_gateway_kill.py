"""A run behind a gateway is killed and resumed: each episode counts once, or is refused."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from gateway_peer import SYSTEM, ask, begin
from ports import free_port
from small_training import SMALL

from env_servers import Server, create_app
from harness.rollouts import rollout_files
from harness.runs import checkpoints, metrics

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
LIMIT_S = 300
TASK = "train/free-000"
SETTINGS = [
    *SMALL,
    "run.name=killed",
    "run.steps=4",
    "run.keep_rollouts=1",
    "eval.every=0",
    "eval.tasks=1",
    "checkpoint.every=2",
    "rollout.tasks_per_step=1",
    "rollout.group_size=2",
    "warmstart.steps=2",
    "optimizer.learning_rate=0.1",  # far, so that another policy is another one
    "optimizer.mini_batches=1",  # the first update is of all rows
    "log.outputs=[]",
]


@dataclass
class Walk:
    """One rollout of an agent, which takes the actions that it is told."""

    gateway: str
    server: str
    group: str
    name: str
    actions: list[str] = field(default_factory=list)

    def __post_init__(self):
        task = {"task": TASK}
        self.session, self.address, self.state = begin(self.server, task)
        self.chat = [{"role": "system", "content": SYSTEM}]

    def ask(self):
        headers = {"X-Rollout-Id": self.name, "X-Group-Id": self.group}
        headers["X-Session-Id"] = self.session
        self.chat.append({"role": "user", "content": self.state["observation"]})
        body = {"messages": self.chat}
        return ask(f"{self.gateway}/v1/chat/completions", body, headers)

    def act(self, *actions):
        for action in actions:
            status, reply = self.ask()
            assert status == 200, reply
            said = reply["choices"][0]["message"]["content"]
            self.chat.append({"role": "assistant", "content": said})
            self.actions.append(action)
            step = {"action": action, "turn": len(self.actions)}
            status, self.state = ask(f"{self.address}/step", step)
            assert status == 200, self.state
        return self

    def report(self):
        return ask(f"{self.gateway}/v1/rollouts/{self.name}/reward", {})

    def end(self):
        status, told = self.report()
        assert (status, told["ended"], told["turns"]) == (200, True, len(self.actions)), told
        return self


@dataclass
class Run:
    """A run's process behind a gateway, which can be killed and resumed."""

    folder: Path
    gateway: str
    environments: str
    process: subprocess.Popen = None

    def start(self, *words):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        log = (self.folder.parent / "log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "harness", *words],
                env=env, cwd=self.folder.parent, stdout=log, stderr=log,
            )  # fmt: skip
        self.until(self.answers)

    def answers(self):
        try:
            return ask(f"{self.gateway}/healthz")[0] == 200
        except OSError:
            return False

    def until(self, condition):
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            said = (self.folder.parent / "log").read_text()
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def walk(self, group, name, *actions):
        return Walk(self.gateway, self.environments, group, name).act(*actions)

    def steps(self):
        return [record["step"] for record in metrics.read(self.folder) if "update/loss" in record]


@pytest.fixture
def run(tmp_path):
    with Server(create_app("agentgyms/Corridor-v0", token="", split="train")) as server:
        port = free_port()
        made = Run(tmp_path / "killed", f"http://127.0.0.1:{port}", server.url)
        settings = [*SETTINGS, f"run.output='{tmp_path}'", f"env.kwargs.url='{server.url}'"]
        sets = [word for one in settings for word in ("--set", one)]
        made.start("gateway", "corridor-tiny", "--address", f"127.0.0.1:{port}", *sets)
        yield made
        made.kill()


def refused(walk, status, what):
    """Assert that neither a call nor a reward of a rollout is taken, and that both say why."""
    for got, error in (walk.ask(), walk.report()):
        assert got == status
        assert what in error["error"]["message"]


def played(run, step):
    """Return the actions and rewards of a step's rollouts, as training has seen them."""
    rollouts = rollout_files.read(run.folder / f"rollouts/step-{step:06d}.jsonl.gz").rollouts
    return [([turn.action for turn in one.turns], one.success) for one in rollouts]


def test_a_killed_run_counts_each_episode_once_and_refuses_what_was_cut_off(run):
    kept = run.walk("kept", "kept-a", "left", "right").end()  # in a group that is not whole yet
    first = [run.walk("one", "one-a", "right").end(), run.walk("one", "one-b", "left").end()]
    second = [run.walk("two", "two-a", "right", "right").end()]
    second.append(run.walk("two", "two-b", "look").end())
    run.until(lambda: [one.step for one in checkpoints.find_all(run.folder)][-1:] == [2])

    third = [run.walk("lost", "lost-a", "right").end(), run.walk("lost", "lost-b", "left").end()]
    run.until(lambda: run.steps() == [1, 2, 3])
    ended = run.walk("late", "late-a", "left").end()
    begun = run.walk("kept", "kept-b", "left")
    run.kill()
    with pytest.raises(OSError, match="refused"):
        begun.ask()

    run.start("train", "--resume", str(run.folder))
    assert run.steps() == [1, 2]
    status, told = ask(f"{run.gateway}/v1/rollouts")
    assert (status, told["begun_groups"], told["open_rollouts"]) == (200, 1, 0)
    for walk in (*third, ended, begun):
        refused(walk, 410, "was cut off when the run was interrupted: take another id")
    for walk in (kept, *first, *second):
        assert walk.report() == (200, {"rollout_id": walk.name, "ended": True})
        assert "has ended" in walk.ask()[1]["error"]["message"]
    kept.name = "kept-again"  # the same episode under another name
    status, error = kept.ask()
    assert status == 409
    assert "is another rollout's" in error["error"]["message"]
    assert ask(f"{run.gateway}/v1/rollouts/kept-again", method="DELETE")[0] == 204

    again = run.walk("kept", "kept-c", "right", "left").end()
    fourth = [run.walk("last", "last-a", "look").end(), run.walk("last", "last-b", "left").end()]
    assert run.process.wait(LIMIT_S) == 0, (run.folder.parent / "log").read_text()
    assert run.steps() == [1, 2, 3, 4]
    for step, walks in enumerate((first, second, [kept, again], fourth), 1):
        assert played(run, step) == [(walk.actions, False) for walk in walks]
    evaluated = [r["step"] for r in metrics.read(run.folder) if "update/loss" not in r]
    assert evaluated == sorted(set(evaluated))
    names = [json.loads(line) for line in (run.folder / "gateway.jsonl").read_text().splitlines()]
    assert len(names) == len(set(names))


def test_a_run_that_is_killed_before_its_first_step_knows_what_was_cut_off(run):
    one = run.walk("one", "one-a", "right").end()
    run.kill()
    run.start("train", "--resume", str(run.folder))
    assert ask(f"{run.gateway}/v1/rollouts")[1]["begun_groups"] == 0
    refused(one, 410, "was cut off when the run was interrupted")
    run.walk("one", "one-b", "right").end()


def test_what_an_earlier_policy_has_played_is_learned_from(run):
    """Ratios of a new run's first update must be 1; those of kept rollouts need not."""
    wins = [*["right"] * 6, "open door"]
    run.walk("kept", "kept-a", *wins).end()
    for group in ("one", "two"):
        run.walk(group, f"{group}-a", *wins).end()
        run.walk(group, f"{group}-b", "left").end()
    run.until(lambda: [one.step for one in checkpoints.find_all(run.folder)][-1:] == [2])
    run.kill()
    run.start("train", "--resume", str(run.folder))
    run.walk("kept", "kept-b", "left").end()
    run.until(lambda: run.steps() == [1, 2, 3])
    assert [won for _, won in played(run, 3)] == [True, False]
