"""Agents that search: MCTS and best-of-n in evaluations, what they cost and what they leave."""

import os
import re
import signal
import subprocess
import time

import pytest
from chat_server import ChatServer
from evaluation_helpers import config, episodes, forgetful, result, served, started, written

from agentgyms.serving.server import Server
from env_servers import create_app
from harness.preflight import recorded_files
from harness.reporting import run_and_report
from harness.rollouts.search.best_of import SELECT
from harness.rollouts.search.tree import Edge, Node, back_up
from harness.types.errors import ConfigError
from harness.types.rollout import Completion, Rollout, StopReason, Turn

SOLVER = {"agent__kind": "mcts", "search__value": "solver", "search__simulations": 16}
ROOMS = {
    "env__id": "agentgyms/Sokoban-v0",
    "env__split": "valid",
    "env__kwargs": {"boxes": 1},
    "run__tasks": 3,
}


def evaluated(folder, **settings):
    """Evaluate by actions without a model."""
    given = {"model__name": "random", **settings}
    return run_and_report.run(config(folder, **given))


def turns(folder):
    return [len(one) - 2 for one in episodes(folder)]


def spent(folder):
    """Return what each episode's search took."""
    return [one[0]["provenance"]["evaluation"]["search"] for one in episodes(folder)]


@pytest.mark.parametrize("task", [{}, ROOMS], ids=["corridor", "sokoban"])
@pytest.mark.parametrize("seed", [0, 1])
def test_with_a_solvers_value_mcts_needs_as_few_turns_as_the_expert(tmp_path, task, seed):
    found = evaluated(tmp_path / "mcts", run__seeds=[seed], **SOLVER, **task)
    best = evaluated(tmp_path / "best", run__seeds=[seed], model__name="expert", **task)
    assert result(found)["figures"]["success"]["mean"] == 1.0
    assert turns(found) == turns(best)


def test_a_search_repeats_by_its_seed_and_tells_its_cost(tmp_path):
    settings = {"agent__kind": "mcts", "search__simulations": 6}
    one, two = (evaluated(tmp_path / name, **settings) for name in "ab")
    assert written(one) == written(two)
    other = evaluated(tmp_path / "c", run__seeds=[1], **settings)
    assert spent(other) != spent(one)
    figures = result(one)["figures"]
    steps = [cost["steps"] + count for cost, count in zip(spent(one), turns(one), strict=True)]
    assert figures["costs"]["steps"]["mean"] == pytest.approx(sum(steps) / len(steps))
    table = (one / "table.md").read_text()
    assert re.search(r"a task took [\d.,]+ environment steps and 0 tokens with its search", table)
    assert "Random + MCTS" in table
    assert (
        "Random + MCTS (value by the solver)"
        in (evaluated(tmp_path / "d", **SOLVER, run__tasks=1) / "table.md").read_text()
    )


@pytest.mark.parametrize("most", [1, 7, 30])
def test_a_search_never_takes_more_steps_than_it_may(tmp_path, most):
    settings = {"agent__kind": "mcts", "search__max_steps": most, "run__tasks": 3}
    found = spent(evaluated(tmp_path, **settings))
    assert [one["steps"] for one in found] == [most] * 3
    free = spent(evaluated(tmp_path / "free", agent__kind="mcts", run__tasks=3))
    assert min(one["steps"] for one in free) > 30


@pytest.mark.parametrize("most", [1500, 4000])
def test_a_search_never_takes_more_tokens_than_it_may(tmp_path, most):
    with ChatServer(forgetful) as server:
        settings = {"agent__kind": "mcts", "search__max_tokens": most, "run__tasks": 2}
        found = run_and_report.run(
            served(tmp_path, server, sampling__max_tokens=40, sampling__temperature=1.0, **settings)
        )
    for own in spent(found):
        assert sum(own["tokens"]) <= most
        assert own["calls"] > 0 or most == 1500
    assert "ReAct + MCTS" in (found / "table.md").read_text()


def test_best_of_several_is_kept(tmp_path):
    """An oracle's choice wins where one of the episodes does, of which the first is direct's."""
    direct = evaluated(tmp_path / "direct", agent__kind="react")
    settings = {"agent__kind": "best-of-n", "search__select": "oracle", "search__episodes": 6}
    best = evaluated(tmp_path / "best", **settings)
    won, alone = _won(best), _won(direct)
    assert sum(won) > sum(alone)
    assert all(b >= a for a, b in zip(alone, won, strict=True))
    assert all(one["episodes"] == 6 for one in spent(best))
    assert "Random + best of 6 (by an oracle)" in (best / "table.md").read_text()
    kept = [one["kept"] for one in spent(best)]
    assert len(set(kept)) > 1
    for own, alone_, number in zip(episodes(best), episodes(direct), kept, strict=True):
        assert (own[1:] == alone_[1:]) is (number == 0)


def _won(folder):
    return [one[-1]["info"]["success"] for one in episodes(folder)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"agent__kind": "react", "search__width": 2}, "only mcts has it"),
        ({"agent__kind": "mcts", "search__episodes": 2}, "only best-of-n has it"),
        ({"agent__kind": "mcts", "agent__context": "summary"}, "'window' or 'transcript'"),
        ({"agent__kind": "best-of-n", "search__select": "likelihood"}, "log-probabilities"),
        (
            {"agent__kind": "mcts", "env__id": "agentgyms/AppWorld-v0"},
            "lists no admissible actions",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message) as caught:
        evaluated(tmp_path, **{"run__tasks": 1, **settings})
    assert len(str(caught.value)) <= 300


def test_preferences_lead_from_worse_to_better_answers(tmp_path):
    found = evaluated(tmp_path, search__preferences=True, **SOLVER)
    pairs = recorded_files.read_preferences(str(found / "preferences.jsonl"))
    assert len(pairs) > 8
    for pair in pairs:
        assert pair.value_chosen > pair.value_rejected
        assert pair.chosen != pair.rejected
        assert pair.visits >= 2
        assert pair.messages[0]["role"] == "user"
    free = [pair for pair in pairs if pair.task_id.startswith("valid_seen/free")]
    assert free
    assert all(re.search("right|open door", pair.chosen) for pair in free)


EVALUATE = """
import sys
from harness.cli.evaluate import evaluate
evaluate(["--env", "Corridor", "--model", "random", "--agent", "mcts", "--seeds", "0,1",
          "--set", f"run.output={sys.argv[1]}", "--set", "run.concurrency=2",
          "--set", "search.simulations=24", "--set", "search.preferences=true"])
"""


@pytest.mark.slow
def test_a_killed_search_goes_on_to_the_same_bytes(tmp_path):
    whole = evaluated(
        tmp_path / "whole",
        run__seeds=[0, 1],
        run__concurrency=2,
        agent__kind="mcts",
        search__simulations=24,
        search__preferences=True,
    )
    child = started(EVALUATE, tmp_path, cwd=tmp_path, stderr=subprocess.PIPE)
    folder = tmp_path / whole.name
    deadline = time.monotonic() + 120
    while (
        not (folder / "recordings.jsonl").exists()
        or not (folder / "recordings.jsonl").stat().st_size
    ):
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=60)
    assert not (folder / "result.json").exists()
    assert run_and_report.resume(folder) == folder
    assert written(folder) == written(whole)
    names = (folder / "preferences.jsonl", whole / "preferences.jsonl")
    assert names[0].read_bytes() == names[1].read_bytes()


def turn(action, *logprobs, key=None):
    said = Completion(action, (1,), tuple(range(len(logprobs))), logprobs)
    return Turn("", "s", said, action, key or action, "ok", 0.0, "", "t", 0.0)


def rollout(*turns, stop=StopReason.TERMINATED, success=False, score=0.0):
    found = Rollout("task", "family", 0, 0, 0)
    found.turns, found.stop_reason, found.success, found.score = [*turns], stop, success, score
    return found


def test_what_a_choice_promises():
    a = rollout(turn("a", -1.0, -1.0), turn("b", -0.5))  # -2.5
    b = rollout(turn("c", -0.1), score=0.5)
    c = rollout(turn("d", -3.0), turn("b", -0.1), success=True)
    cut = rollout(turn("e", -0.01), stop=StopReason.TURN_LIMIT)
    assert SELECT["likelihood"]([a, b, c]) == 1
    assert SELECT["likelihood"]([rollout(), a]) == 1, "one without an answer is never preferred"
    assert SELECT["majority"]([b, a, c]) == 1, "b is the most frequent last action"
    assert SELECT["majority"]([cut, b]) == 1, "an episode that was cut off has no answer"
    assert SELECT["majority"]([cut, cut]) == 0
    assert SELECT["oracle"]([a, b]) == 1
    assert SELECT["oracle"]([b, c]) == 1
    silent = rollout(turn("a"))
    with pytest.raises(ConfigError, match="the model reports no log-probabilities"):
        SELECT["likelihood"]([a, silent])


def test_a_backup_is_the_mean_or_the_best():
    path = [
        (node, node.edges[0])
        for node in (Node(0, None, 0.5, edges(2)), Node(1, None, 0.4, edges(1)))
    ]
    root, inner = path
    back_up(path, 1.0, 0.5)
    back_up(path[:1], 0.2, 0.5)
    assert (root[1].visits, root[1].value) == (2, pytest.approx((0.25 + 0.1) / 2))
    assert inner[1].value == 0.5
    path = [
        (node, node.edges[0])
        for node in (Node(0, None, 0.5, edges(2)), Node(1, None, 0.4, edges(1)))
    ]
    root, inner = path
    back_up(path, 1.0, 0.5, "max")
    assert (inner[1].value, root[1].value) == (0.5, 0.25)
    back_up(path, 0.0, 0.5, "max")
    assert (inner[1].value, root[1].value) == (0.0, 0.0), "its only action is tried, and worth 0"
    assert root[0].top == 0.5, "an action of the root is untried"


def edges(count):
    return [Edge(None, 1 / count) for _ in range(count)]


@pytest.mark.slow
def test_a_search_on_a_server_is_that_in_this_process(tmp_path):
    here = evaluated(tmp_path / "here", **SOLVER)
    with Server(create_app("agentgyms/Corridor-v0", token="", max_sessions=64)) as server:
        there = evaluated(tmp_path / "there", env__kwargs={"url": server.url}, **SOLVER)
    assert [one[1:] for one in episodes(there)] == [one[1:] for one in episodes(here)]
    assert spent(there) == spent(here)
