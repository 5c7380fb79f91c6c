"""The public contract tests, and the contract where the actions are code that does something."""

from __future__ import annotations

import json
import random
import sys

import gymnasium as gym
import pytest
from appworld_episodes import play_expert

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadSnapshot, ReplayMismatch
from agentgyms.envs.appworld.env import AppWorldEnv
from agentgyms.envs.appworld.sandbox import code_extraction, executors
from agentgyms.serving.server import Server
from agentgyms.testing.playing import plain
from env_servers import create_app

ENV_ID = "agentgyms/AppWorld-v0"
UNWRITABLE = (f"kept = 0x{'f' * 4000}",)
"""Code that Python runs, and that `ast.unparse` refuses."""
if sys.version_info < (3, 12):
    UNWRITABLE += ("kept = 1\nprint(f\"{'\xa0\u200b'}\")",)

CODE = (
    "print(apis.api_docs.show_app_descriptions())",
    "n = globals().get('n', 0) + 1\nprint(n)",
    "print(apis.supervisor.show_profile())",
    "import random\nprint(random.random(), {1: 2}, {'a', 'b', 'c'}, object())",
    "from datetime import datetime\nprint(datetime.now())",
    "apis.supervisor.show_profile(3)",
    "x = 1\ndef f():\n    return x / 0\nf()",
    "apis.purse.show_balance(access_token='wrong')",
    "I think that",
    "import sys",
    "",
    *UNWRITABLE,
)
"""Actions of all kinds, none of which ends the episode."""


REAL = pytest.mark.appworld


def make(**kwargs):
    return gym.make(ENV_ID, **kwargs)


def test_environment():
    testing.check_env(lambda: make(split="sample", oracle=True, max_turns=6))


@pytest.mark.slow  # tests/servers does this over a socket
def test_determinism_and_snapshots_of_junk():
    testing.check_determinism(lambda: make(max_turns=6))
    testing.check_snapshot(lambda: make(max_turns=6))


def test_group():
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 8))


@pytest.mark.slow
def test_four_environments_at_once():
    testing.check_vector(ENV_ID, num_envs=4, split="dev")


def turns(env, seed):
    """Return what an episode of chosen code and of the expert's last block gives."""
    rng = random.Random(seed)
    seen = [env.reset(seed=seed)]
    seen += [env.step(rng.choice(CODE)) for _ in range(12)]
    seen.append(env.step("apis.supervisor.complete_task(answer='3')"))
    return [plain(item) for item in seen]


@pytest.mark.parametrize("kwargs", [{}, {"score": "end", "state": "database"}], ids=["code", "db"])
def test_code_is_deterministic(kwargs):
    one, two = AppWorldEnv(**kwargs), AppWorldEnv(**kwargs)
    for seed in range(2):
        first = turns(one, seed)
        assert first == turns(two, seed)
        assert first[-1][2], "complete_task did not end the episode"


def test_a_server_is_ready_when_its_processes_are_warm():
    executors.fork_server("mini").close()
    with create_app(ENV_ID, token="").test_client() as client:
        assert client.get("/readyz").status_code == 200
    assert executors.fork_server("mini").pid, "the first turn would wait for the server"


def test_the_server_gives_the_same_episodes():
    with Server(create_app(ENV_ID, token="")) as server:
        remote = make(url=server.url).unwrapped
        local = AppWorldEnv()
        assert turns(remote, 5) == turns(local, 5)
        remote.reset(seed=6)
        assert plain(play_expert_remotely(remote)) == plain(play_expert_locally(local))
        remote.close()


@pytest.fixture(params=["in process", "over HTTP", pytest.param("engine", marks=REAL)])
def place(request):
    """An environment in its first turn."""
    if request.param == "over HTTP":
        with Server(create_app(ENV_ID, token="")) as server:
            yield make(url=server.url)
    elif request.param == "engine":
        request.getfixturevalue("generated_roots")
        yield make(engine="appworld", split="dev")
    else:
        yield make()


@pytest.mark.parametrize("code", UNWRITABLE)
def test_code_that_cannot_be_written_again_is_a_turn_like_others(place, code):
    place.reset(seed=1)
    *_, info = place.step(code)
    assert (info["feedback"], info["action_key"]) == ("ok", code)
    assert place.step("print(kept > 0)")[0] == "True\n"
    place.close()


def test_the_action_key_is_made_before_the_code_runs(monkeypatch):
    env = AppWorldEnv()
    env.reset(seed=1)
    monkeypatch.setattr(code_extraction, "canonical", lambda code: 1 / 0)
    monkeypatch.setattr(env._runner, "run", lambda code: pytest.fail("the code was executed"))
    with pytest.raises(ZeroDivisionError):
        env.step("x = 1")


def play_expert_locally(env):
    env.reset(seed=6)
    return play_expert(env)


def play_expert_remotely(env):
    blocks = AppWorldEnv()
    blocks.reset(seed=6)
    results = []
    while not results or not results[-1][2]:
        code = blocks.expert_actions()["best"]
        blocks.step(code)
        results.append(env.step(code))
    return results


def test_snapshots_hold_variables_and_records():
    env = AppWorldEnv()
    env.reset(seed=3)
    for code in CODE:
        env.step(code)
    saved = env.snapshot()
    other = AppWorldEnv()
    other.reset(seed=4)
    assert plain(other.restore(saved)[1])["turn"] == len(CODE)
    twin = env.fork()
    assert saved == other.snapshot() == twin.snapshot()
    for code in (CODE[1], "x += 1\nprint(x, f)", CODE[3]):
        results = [plain(each.step(code)) for each in (env, other, twin)]
        assert results[0] == results[1] == results[2]
    assert "2\n" not in results[0][0]


def test_snapshots_of_ended_episodes_start_nothing():
    env = AppWorldEnv(max_turns=2, timeout_s=0.2)
    for ends in (["1", "while True: pass"], ["apis.supervisor.complete_task()"]):
        env.reset(seed=3)
        *_, info = [env.step(code) for code in ends][-1]
        twin = env.fork()
        assert twin.snapshot() == env.snapshot()
        with pytest.raises(gym.error.ResetNeeded):
            twin.step("1")
        assert info["turn"] == len(ends)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("executed", ["import sys"], BadSnapshot),
        ("executed", ["x = = 1"], BadSnapshot),
        ("executed", "x = 1", BadSnapshot),
        ("executed", [3], BadSnapshot),
        ("executed", ["apis.supervisor.complete_task()"], ReplayMismatch),
        ("digest", "", BadSnapshot),
        ("digest", None, BadSnapshot),
        ("turns", -1, BadSnapshot),
        ("turns", True, BadSnapshot),
        ("counts", {"api_calls": 1.5}, BadSnapshot),
        ("counts", {"wrong": 1}, BadSnapshot),
        ("over", 0, BadSnapshot),
    ],
)
def test_damaged_states_are_refused(name, value, error):
    env = AppWorldEnv(split="sample")
    env.reset(seed=3)
    env.step("x = 1")
    saved = json.loads(env.snapshot())
    env.restore(json.dumps(saved).encode())
    saved["engine"][name] = value
    with pytest.raises(error):
        env.restore(json.dumps(saved).encode())
    env.close()
