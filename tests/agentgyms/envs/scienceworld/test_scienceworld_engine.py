"""The real ScienceWorld: contract, gold paths, equal episodes in every JVM, no leftovers."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import pytest

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadSnapshot, Mismatch, WorkerLost
from agentgyms.envs.scienceworld import engine, tasks
from agentgyms.processes import workers
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app

pytestmark = pytest.mark.scienceworld

ENV_ID = "agentgyms/ScienceWorld-v0"
WALK = ["open door to kitchen", "go to kitchen", "open door", "0", "look around", "wait", "eat air"]


def make(**kwargs):
    return gym.make(ENV_ID, engine="official", **{"split": "sample", **kwargs})


@pytest.fixture(scope="module", autouse=True)
def nothing_left():
    yield
    engine.end_idle()
    assert workers.counts()["scienceworld-engine"].alive == 0
    assert not list(Path().glob("*.tsv")), "the engine writes into its own folder"


@pytest.fixture
def env():
    with make() as one:
        yield one.unwrapped


def start(env, name, number=0):
    return env.reset(seed=0, options={"task_id": f"{name}/{number}"})


def test_the_table_of_tasks_is_the_engines():
    code = """if True:
        import json, scienceworld
        env, found = scienceworld.ScienceWorldEnv(), {}
        for name in env.get_task_names():
            env.load(name)
            train, dev = env.get_variations_train(), env.get_variations_dev()
            found[name] = [train, dev, env.get_variations_test()]
        print(json.dumps([found, env.get_possible_simplifications()]))
    """
    python = os.environ[engine.PYTHON_VARIABLE]
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    found, simplifications = json.loads(run.stdout.splitlines()[-1])
    assert found == {
        name: [[*tasks.numbers(name, split)] for split in ("train", "dev", "test")]
        for name in tasks.VARIATIONS
    }
    assert tuple(simplifications) == tasks.SIMPLIFICATIONS


def test_it_keeps_the_contract_here_and_on_a_server():
    kwargs = {"split": "sample", "families": ["lifespan-longest-lived"], "max_turns": 2}
    kwargs["engine"] = "official"
    with Server(create_app(ENV_ID, token="")) as server:
        testing.check_remote_parity(
            lambda: gym.make(ENV_ID, **kwargs),
            lambda: RemoteEnv(ENV_ID, url=server.url, **kwargs),
        )


def test_the_gold_path_wins(env):
    start(env, "power-component")
    expert, over = agentgyms.expert(env), False
    while not over:
        *_, terminated, truncated, info = env.step(expert())
        over = terminated or truncated
    assert (info["success"], terminated) == (True, True)


@pytest.mark.parametrize("name", ["boil", "grow-plant", "power-component"])
def test_ours_gives_the_same_episode(name):
    """Traces of more tasks are in data/traces.json; parity_long.py plays thousands of turns."""
    rng, number = random.Random(name), tasks.VARIATIONS[name] - 1
    with gym.make(ENV_ID, split="test", engine="own") as made, make(split="test") as real:
        ours, theirs = made.unwrapped, real.unwrapped
        seen, found = start(ours, name, number), start(theirs, name, number)
        for _ in range(20):
            for info in (seen[-1], found[-1]):
                assert info.pop("state_key"), "each engine has its own"
                info.pop("observation_key", None)
            assert seen == found
            listed = [a for a in seen[-1]["admissible_actions"] if not a.startswith("focus")]
            action = rng.choice(listed)  # a wrong focus ends the episode
            seen, found = ours.step(action), theirs.step(action)


def walked(env, name, actions):
    seen = [start(env, name)]
    return [*seen, *(env.step(action) for action in actions)]


def test_an_episode_is_the_same_in_a_fresh_jvm_and_in_a_used_one(env):
    walked(env, "boil", WALK)
    with make() as other:
        assert walked(env, "grow-plant", WALK) == walked(other.unwrapped, "grow-plant", WALK)
        with make(list_actions=False) as third:  # the lists draw nothing that the world notices
            unlisted = walked(third.unwrapped, "grow-plant", WALK)
    listed = walked(env, "grow-plant", WALK)
    assert [one[-1]["state_key"] for one in unlisted] == [one[-1]["state_key"] for one in listed]
    assert unlisted[-1][-1]["admissible_actions"] == []


def test_what_takes_no_time_changes_no_state(env):
    _, info = start(env, "boil")
    for action in ("look around", "inventory", "task", "help", "zzz"):
        assert env.step(action)[-1]["state_key"] == info["state_key"], action
    assert env.step("wait1")[-1]["state_key"] != info["state_key"]


def test_forks_play_on_alone_and_another_replay_is_refused(env):
    walked(env, "find-animal", WALK[:4])
    snapshot = env.snapshot()
    with env.fork() as twin:
        assert twin.step("wait1") == env.step("wait1")
    changed = json.loads(snapshot)
    changed["actions"][0] = "wait1"
    with pytest.raises(Mismatch, match="replaying seed 0 and 4 actions reached state"):
        env.restore(json.dumps(changed).encode())
    with make(simplification="easy") as easy, pytest.raises(BadSnapshot):
        easy.unwrapped.restore(snapshot)


def test_a_jvm_plays_many_episodes_and_a_lost_one_is_replaced(env):
    start(env, "boil")
    before = workers.counts()["scienceworld-engine"].starts
    for _ in range(3):
        env.close()
        start(env, "boil")
    assert workers.counts()["scienceworld-engine"].starts == before
    os.kill(env._engine._child.greeting["java"], signal.SIGKILL)
    with pytest.raises(WorkerLost):
        env.step("look around")
    assert start(env, "boil")[1]["turn"] == 0


def gone(pid):
    """Whether a process has ended; one that waits for its parent counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_killed_parent_leaves_no_process():
    code = f"""if True:
        import gymnasium, os, agentgyms
        env = gymnasium.make({ENV_ID!r}, split="sample", engine="official").unwrapped
        env.reset(seed=0)
        child = env._engine._child
        print(child._process.pid, child.greeting["java"], flush=True)
        os.kill(os.getpid(), 9)
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    pids = run.stdout.split()
    assert len(pids) == 2
    end = time.monotonic() + 300
    while not all(map(gone, pids)):
        assert time.monotonic() < end, f"of {pids} some live on"
        time.sleep(0.1)
