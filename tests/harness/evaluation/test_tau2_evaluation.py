"""tau2-bench's tasks evaluated with models as agent and customer: a kill, pass^k, and whose figure.

The tasks are those of small_official.py.
"""

import json
import math
import os
import signal
import subprocess
import time
from collections import Counter

import pytest
from chat_server import ChatServer, choice, stall, tool_call
from evaluation_helpers import episodes, result, served, started, written

from harness.evaluation import folders
from harness.reporting import run_and_report
from harness.reporting.results.loading import load
from harness.reporting.tables import details
from harness.types.errors import ConfigError
from tests.agentgyms.envs.tau2 import small_official
from tests.agentgyms.envs.tau2.small_official import CANCEL, LOOK

SEEDS = [0, 1, 2, 3]
EVALUATE = """
import sys
from harness.cli.evaluate import evaluate
evaluate(["--env", "Tau2", "--split", "base", "--seeds", "0,1,2,3", "--model", "scripted",
          "--env-arg", "domain=retail", "--env-arg", f"data_path={sys.argv[2]}",
          "--env-arg", f"customer={sys.argv[3]}", "--url", sys.argv[4],
          "--set", "agent.style=tools", "--set", f"run.output={sys.argv[1]}",
          "--set", "run.concurrency=2", "--set", "service.cache=false"])
"""
CLOSE = ("say", {"words": "Is there anything else?"})
HELPFUL = [LOOK, CANCEL, ("say", {"words": "You get 1020.5 as a gift."}), CLOSE]
WON = {("0", 0), ("1", 1), ("2", 0)}
"""Tasks and moods that are won: an order is to be cancelled, or left alone; 2 asks for a look."""


def agent(messages):
    """Help a friendly customer, and get rid of another one."""
    plan = HELPFUL if "Mood 0." in json.dumps(messages) else [CLOSE]
    turn = sum(message["role"] == "assistant" for message in messages)
    return {"content": "", "tool_calls": [tool_call(*plan[turn], f"call-{turn}")]}


def moody(number, body):
    """Answer as a customer, friendly or not as the request's seed says."""
    is_done = "anything else" in body["messages"][-1]["content"]
    return choice(content="###STOP###" if is_done else f"Mood {body['seed'] % 2}.")


@pytest.fixture
def held():
    """Holds at most the number of the first request that the agent's server leaves unanswered."""
    return []


@pytest.fixture
def servers(held):
    waits = lambda number, body: stall() if held and number >= held[0] else None
    with (
        ChatServer(agent, waits) as serves,
        ChatServer(str, moody, model="customer-1") as customer,
    ):
        yield serves, customer


def settings(folder, customer):
    asked = {"name": customer.model, "url": customer.url, "cache": False}
    kwargs = {"domain": "retail", "data_path": str(folder), "customer": asked}
    return {
        "env__id": "Tau2",
        "env__split": "base",
        "env__kwargs": kwargs,
        "agent__style": "tools",
        "run__seeds": SEEDS,
        "run__concurrency": 2,
    }


def test_a_killed_evaluation_goes_on_and_tells_pass_k_and_the_customer(tmp_path, servers, held):
    serves, customer = servers
    data = small_official.write(tmp_path / "data")
    whole = run_and_report.run(served(tmp_path / "whole", serves, **settings(data, customer)))
    asked = f"{{name='{customer.model}', url='{customer.url}', cache=false}}"
    words = (tmp_path / "killed", data, asked, serves.url)
    held.append(3 * len(serves.requests) // 2)  # half of the requests are answered
    child = started(EVALUATE, *words, cwd=tmp_path, stderr=subprocess.PIPE)
    folder, deadline = tmp_path / "killed" / whole.name, time.monotonic() + 120
    while len(serves.requests) <= held[0]:
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=60)
    held.clear()
    assert not (folder / "result.json").exists()
    before = len(serves.requests)
    run_and_report.resume(folder)
    assert len(serves.requests) - before < sum(len(turns) for _, _, *turns in episodes(folder))
    assert written(folder) == written(whole)
    check_result(folder)
    other = folders.read_config(folder)
    other.env.kwargs["customer"]["name"] = "customer-2"
    with pytest.raises(ConfigError, match="customer-2"):
        run_and_report.resume(folder, other)


def check_result(folder):
    """Count the figures of an evaluation again from its episodes."""
    found = result(folder)
    assert (found["partner"], found["data_source"]) == ("customer-1", "official")
    assert found["episodes"] == {"planned": 16, "finished": 16, "missing": 0}
    assert found["figures"]["parties"]["tokens"]["calls"] > 16
    won = Counter()
    for header, *rest in episodes(folder):
        assert header["parties"] == {"partner": "customer-1"}
        task_id, mood = header["options"]["task_id"], int("Mood 1." in json.dumps(rest))
        assert rest[-1]["info"]["success"] == ((task_id, mood) in WON)
        won[task_id] += rest[-1]["info"]["success"]
    assert any(0 < count < 4 for count in won.values())
    passed = found["figures"]["samples"]["all"]
    for k, one in enumerate(passed, 1):
        low, high = one["success"]["interval"]
        mean = sum(math.comb(count, k) for count in won.values()) / math.comb(4, k) / len(won)
        assert (one["k"], one["success"]["mean"]) == (k, pytest.approx(mean))
        assert low <= mean <= high
        assert low < high or mean == 0
    assert len(passed) == 4
    table = details.to_markdown(load(folder))
    assert "customer-1 as partner" in table
    assert "| pass^4 | " in table
