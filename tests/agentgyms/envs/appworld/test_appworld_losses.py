"""Processes that are lost: whose fault it was decides what it costs."""

from __future__ import annotations

import dataclasses
import gc
import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from appworld_episodes import children, executor_of, open_files, play_expert, settled
from gymnasium.error import ResetNeeded

from agentgyms.core.errors import WorkerLost
from agentgyms.envs.appworld.env import AppWorldEnv
from agentgyms.envs.appworld.sandbox import executors
from agentgyms.envs.appworld.sandbox.forkserver import WorkerDied

SPINNING = "apis.supervisor.show_profile()\nwhile True: pass"
HOLDING_ON = "sum(range(10**15))"  # in C, which no signal interrupts


@pytest.fixture
def env():
    env = AppWorldEnv(split="sample", timeout_s=5)
    env.reset(seed=0)
    env.step("x = [1]\nprint(x)")
    yield env
    env.close()


@pytest.fixture
def impatient(monkeypatch):
    """Code that goes on after its time is killed sooner than usual."""
    monkeypatch.setattr(executors, "GRACE_S", 0.3)


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)


def test_an_executor_lost_between_turns_costs_nothing(env):
    kill(executor_of(env).pid)
    while executor_of(env).alive:
        pass
    observation, *_, info = env.step("x.append(2)\nprint(len(x))")
    assert (observation, info["feedback"]) == ("2\n", "ok")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_executor_lost_in_a_turn_costs_that_turn(env, number):
    *_, before = env.step("x.append(2)")
    timer = threading.Timer(0.2, kill, [executor_of(env).pid, number])
    timer.start()
    observation, reward, terminated, truncated, info = env.step(f"x.append(3)\n{SPINNING}")
    timer.join()
    assert "Nothing of this code was done" in observation
    assert signal.Signals(number).name in info["feedback_text"]
    assert (reward, terminated, truncated, info["feedback"]) == (0, False, False, "failed")
    assert info["state_key"] == before["state_key"]
    assert info["metrics"]["api_calls"] == 0
    assert env.step("print(len(x))")[0] == "2\n"
    twin = env.fork()
    assert twin.snapshot() == env.snapshot(), "the lost turn cannot be replayed"
    assert twin.step("print(len(x))")[0] == "2\n"
    twin.close()
    assert all(r[4]["success"] == r[2] for r in play_expert(env))


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("abort()", "it died of SIGABRT"),
        ("leave(3)", "it exited with code 3"),
        (HOLDING_ON, "it ran on after its time was up"),
    ],
)
def test_code_that_ends_its_process_ends_the_episode(monkeypatch, impatient, code, why):
    monkeypatch.setattr("agentgyms.envs.appworld.sandbox.code_check.refusal", lambda code: None)
    env = AppWorldEnv(split="sample", timeout_s=0.2, score="end")
    _, start = env.reset(seed=0)
    assert start["score"] == 0
    env.step("from posix import abort, _exit as leave")
    observation, reward, terminated, truncated, info = env.step(
        f"apis.supervisor.show_profile()\n{code}"
    )
    assert why in observation
    assert why in info["feedback_text"]
    assert (reward, terminated, truncated, info["feedback"]) == (0, False, True, "failed")
    assert 0 < info["score"] < 1
    assert info["metrics"]["api_calls"] == 1
    assert executor_of(env) is None
    assert env.fork().snapshot() == env.snapshot()
    _, info = env.reset(seed=0)
    assert info["state_key"] == start["state_key"]
    assert env.step("print(1)")[0] == "1\n"
    env.close()


def test_a_fork_server_that_is_lost_between_turns_costs_nothing(env):
    kill(executors.fork_server("mini").pid)
    while executor_of(env).alive:  # it follows its server
        pass
    assert env.step("print(x)")[0] == "[1]\n"


class Fragile:
    """A world whose process is lost at one of its calls."""

    def __init__(self, world, losing):
        self._world, self._losing = world, losing

    def __getattr__(self, name):
        return getattr(self._world, name)

    @property
    def alive(self):
        if "alive" in self._losing:
            self._losing.remove("alive")
            return False
        return self._world.alive

    def call(self, app, api, arguments):
        self._lose(api)
        return self._world.call(app, api, arguments)

    def digest(self):
        self._lose("digest")
        return self._world.digest()

    def report(self):
        self._lose("report")
        return self._world.report()

    def _lose(self, what):
        if what in self._losing:
            self._losing.remove(what)
            raise WorkerDied("the world's process died", signal=signal.SIGSEGV)


def fragile(env, losing):
    """Let each of the worlds that `env` opens from now on lose its process as `losing` says."""
    tasks, left = env._source, [*losing]
    opened = tasks.open

    class Losing:
        version, families, solution = tasks.version, tasks.families, tasks.solution

        def open(self, task_id):
            return Fragile(opened(task_id), left)

    env._source = Losing()
    env._options = dataclasses.replace(env._options, score="end")
    env.reset(seed=0)
    env.step("x = [1]\nprint(x)")
    return left


@pytest.mark.parametrize("times", [1, 3])
def test_a_world_that_is_lost_in_a_call_costs_the_turn(env, times):
    left = fragile(env, [])
    left += ["show_profile"] * times
    for _ in range(times):
        observation, *_, info = env.step("x.append(2)\napis.supervisor.show_profile()")
        assert info["feedback_text"] == "WorkerLost: the process of the apps did not answer"
        assert "Nothing of this code was done" in observation
        assert info["metrics"]["api_calls"] == 0
    assert env.step("print(x)")[0] == "[1]\n"


def test_a_world_that_is_lost_between_turns_costs_nothing(env):
    left = fragile(env, [])
    left += ["alive"]
    observation, *_, info = env.step("x.append(2)\nprint(len(x))")
    assert (observation, info["feedback"], left) == ("2\n", "ok", [])


def test_a_world_that_is_lost_when_the_tests_run_costs_nothing(env):
    fragile(env, ["report"])
    *_, last = play_expert(env)
    assert last[1] == 1
    assert last[4]["success"]


def test_a_world_that_cannot_be_had_again_is_an_error_and_no_verdict(env):
    left = fragile(env, [])
    left += ["show_profile", *["digest"] * 3]
    with pytest.raises(WorkerLost, match="the world's process died"):
        env.step("apis.supervisor.show_profile()")
    with pytest.raises(ResetNeeded):
        env.step("print(3)")
    assert executor_of(env) is None
    env.reset(seed=0)
    assert env.step("print(3)")[0] == "3\n"


def test_a_state_that_does_not_come_out_again_is_an_error_and_no_verdict(env):
    env._runner.digest = "of other records"
    kill(executor_of(env).pid)
    while executor_of(env).alive:
        pass
    with pytest.raises(WorkerLost, match="depend on the clock or on chance"):
        env.step("print(1)")
    with pytest.raises(ResetNeeded):
        env.step("print(1)")


def test_an_interrupted_turn_ends_the_episode(env, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(executors.Executor, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.step("x.append(2)")
    monkeypatch.undo()
    with pytest.raises(ResetNeeded):
        env.step("print(x)")
    env.reset(seed=0)
    assert env.step("print(3)")[0] == "3\n"


@pytest.mark.slow
def test_thirty_two_episodes_at_once_with_kills_in_between_leave_nothing():
    executors.fork_server("mini").warm()
    gc.collect()
    before, files = len(children()), open_files()
    envs = [AppWorldEnv() for _ in range(32)]
    ids = envs[0].tasks

    def play(number):
        env, rng = envs[number], random.Random(number)
        env.reset(options={"task_id": ids[number * 5]})
        while True:
            executor = executor_of(env)
            if executor is not None and rng.random() < 0.2:
                kill(executor.pid)
            result = env.step(env.expert_actions()["best"])
            if result[2] or result[3]:
                return result[4]["success"]

    with ThreadPoolExecutor(32) as threads:
        assert all(threads.map(play, range(32)))
    assert settled(before) == before
    assert open_files() == files
