"""The real ScienceWorld: contract, gold paths, equal episodes in every JVM, no leftovers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import pytest
from chat_server import ChatServer
from click.testing import CliRunner

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadSnapshot, Mismatch, WorkerLost
from agentgyms.envs.scienceworld import engine, tasks
from agentgyms.processes import workers
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app
from harness.cli.main import main as harness_cli

pytestmark = pytest.mark.scienceworld

ENV_ID = "agentgyms/ScienceWorld-v0"
WALK = ["open door to kitchen", "go to kitchen", "open door", "0", "look around", "wait", "eat air"]


def make(**kwargs):
    return gym.make(ENV_ID, **{"split": "sample", **kwargs})


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
    with Server(create_app(ENV_ID, token="")) as server:
        testing.check_remote_parity(
            lambda: gym.make(ENV_ID, **kwargs),
            lambda: RemoteEnv(ENV_ID, url=server.url, **kwargs),
        )


@pytest.mark.parametrize(
    "name",
    ["find-animal", "identify-life-stages-2", "lifespan-longest-lived", "power-component"],
)
def test_the_gold_path_wins(env, name):
    start(env, name)
    expert, total, over = agentgyms.expert(env), 0.0, False
    env.step("look around")  # which the path goes on after
    while not over:
        _, reward, terminated, truncated, info = env.step(expert())
        total, over = total + reward, terminated or truncated
        assert info["feedback"] == "ok"
    assert (info["success"], info["score"], info["progress"], terminated) == (True, 1.0, 1.0, True)
    assert total == pytest.approx(1)
    assert all(holds for holds in info["atoms"].values() if isinstance(holds, bool))


def test_a_wrong_focus_fails(env):
    start(env, "find-animal")
    _, reward, terminated, _, info = env.step("focus on orange")
    assert (reward, terminated, info["success"], info["score"]) == (-1.0, True, False, 0.0)
    assert info["metrics"]["points"] == -100


def test_ambiguous_requests_are_answered_with_a_number_or_cancelled(env):
    start(env, "find-animal")
    asked, *_, info = env.step("open door")
    assert asked.startswith("Ambiguous request")
    assert "\n0:\topen door" in asked
    assert info["admissible_actions"][:2] == ["0", "1"]
    opened, *_, info = env.step("0")
    assert (opened, info["feedback"], info["action_key"]) == ("The door is now open.", "ok", "0")
    env.step("open door")
    *_, cancelled = env.step("")
    assert cancelled["feedback"] == "ok"
    unknown, *_, info = env.step("0")
    assert (unknown, info["feedback"]) == ("No known action matches that input.", "inadmissible")
    assert env.step("\x00")[-1]["feedback"] == "malformed"


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


def test_simplifications_are_the_engines():
    with make(simplification="easy") as made:
        env = made.unwrapped
        start(env, "find-animal")
        assert env.step("open door to kitchen")[0] == "The door is already open."


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
        env = gymnasium.make({ENV_ID!r}, split="sample").unwrapped
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


def test_a_model_is_evaluated_with_the_forms_of_commands_in_its_prompt():
    answer = "<think>I look first.</think><action>open door to kitchen</action>"
    words = ["eval", "--env", "ScienceWorld", "--split", "sample", "--tasks", "1"]
    words += ["--agent", "react", "--model", "scripted", "--name", "science"]
    words += ["--set", "env.max_turns=3", "--env-arg", "list_actions=false"]
    with ChatServer(lambda messages: answer, model="scripted") as server:
        done = CliRunner().invoke(harness_cli, [*words, "--url", server.url])
    assert done.exit_code == 0, done.output
    prompt = json.dumps(server.requests[0].body["messages"])
    assert "focus on OBJ" in prompt
    assert "Your task is to" in prompt
    result = json.loads(Path("evaluations/science/result.json").read_text())
    assert (result["episodes"]["finished"], result["data_source"]) == (1, "official"), result
