"""The same environment on AppWorld itself, with tasks of our own."""

from __future__ import annotations

import os
import signal

import gymnasium as gym
import pytest
from appworld_episodes import children, executor_of, settled

import agentgyms
from agentgyms import testing
from agentgyms.envs.appworld.env import AppWorldEnv
from agentgyms.envs.appworld.sandbox import executors
from agentgyms.serving.server import Server
from agentgyms.testing.playing import plain
from env_servers import create_app

pytestmark = [pytest.mark.appworld, pytest.mark.usefixtures("generated_roots")]
ENV_ID = "agentgyms/AppWorld-v0"
REAL = {"engine": "appworld"}
CODE = (
    "print(apis.supervisor.show_profile()['email'])",
    "import random\nprint(random.random(), DateTime.now(), pendulum.now())",
    "apis.simple_note.show_account(access_token='wrong')",
    "apis.venmo.nope()",
    "p = {a['account_name']: a['password'] for a in apis.supervisor.show_account_passwords()}\n"
    "e = apis.supervisor.show_profile()['email']\n"
    "t = apis.simple_note.login(username=e, password=p['simple_note'])['access_token']\n"
    "print(t)\n"
    "print(apis.simple_note.create_note(access_token=t, title='x', content='y'))",
    "print(",
)


def make(**kwargs):
    return gym.make(ENV_ID, **REAL, **kwargs)


@pytest.fixture
def env():
    env = AppWorldEnv(**REAL, split="sample")
    env.reset(seed=0)
    yield env
    env.close()


def test_the_contract():
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 2, **REAL))


@pytest.mark.slow
def test_the_whole_contract():
    testing.check_env(lambda: make(max_turns=4))
    testing.check_determinism(lambda: make(max_turns=4))
    testing.check_snapshot(lambda: make(max_turns=4))


def turns(env):
    seen = [env.reset(seed=0), *(env.step(code) for code in CODE)]
    return plain([*seen, env.step("apis.supervisor.complete_task(answer='3')")])


def test_a_server_gives_the_same_episode(env):
    with Server(create_app(ENV_ID, token="")) as server:
        remote = make(url=server.url, split="sample").unwrapped
        local = turns(env)
        assert local == turns(remote) == turns(env)
        remote.close()
    feedback = [info["feedback"] for *_, info in local]
    assert feedback == ["ok", "ok", "ok", "failed", "failed", "ok", "failed", "ok"]
    assert local[-1][4]["metrics"]["tests"] > local[-1][4]["metrics"]["tests_passed"]


def test_a_fork_goes_on_with_variables_and_records(env):
    for code in CODE:
        env.step(code)
    twin = env.fork()
    code = "print(apis.simple_note.search_notes(access_token=t, query='x'))"
    assert plain(twin.step(code)) == plain(env.step(code))
    twin.close()


@pytest.mark.parametrize(
    ("lost", "number"),
    # An executor is stopped between turns, so it cannot crash.
    [("executor", signal.SIGKILL), ("engine", signal.SIGKILL), ("engine", signal.SIGSEGV)],
)
def test_a_process_lost_between_turns_costs_at_most_a_turn(env, lost, number):
    *_, before = env.step(CODE[4])
    pid = executor_of(env).pid if lost == "executor" else env._runner._resources.world.pid
    os.kill(pid, number)
    settled(len(children()) - 1, patience_s=1)
    results = [env.step("print(len(t) > 9, apis.supervisor.show_profile()['email'] == e)")]
    if results[0][4]["feedback"] == "failed":
        assert results[0][4]["state_key"] == before["state_key"]
        results.append(env.step("print(len(t) > 9, apis.supervisor.show_profile()['email'] == e)"))
    assert results[-1][0] == "True True\n"


def test_nothing_is_left(env):
    executors.fork_server("appworld").warm()
    env.close()
    before = len(children())
    for seed in range(3):
        env.reset(seed=seed)
        env.step(CODE[0])
        env.step("apis.supervisor.complete_task()")
    assert settled(before) <= before
