"""The public contract tests, over the closed world and over files."""

import json

import gymnasium as gym
import pytest

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadSnapshot
from agentgyms.envs.searchqa.env import SearchQAEnv
from agentgyms.testing import several

ENV_ID = "agentgyms/SearchQA-v0"


@pytest.fixture(params=["generated", "files"])
def make(request, tmp_path):
    if request.param == "generated":
        return lambda: gym.make(ENV_ID, split="valid", oracle=True, max_turns=6)
    rows = [{"id": i, "question": f"what is {i}?", "golden_answers": [f"x{i}"]} for i in range(7)]
    questions, corpus = tmp_path / "nq.jsonl", tmp_path / "corpus.jsonl"
    questions.write_text("\n".join(map(json.dumps, rows)))
    documents = [{"id": str(i), "contents": f'"query {i}"\nit is x{i}'} for i in range(7)]
    corpus.write_text("\n".join(map(json.dumps, documents)))
    return lambda: gym.make(ENV_ID, source="flashrag", data_path=questions, corpus=corpus)


def test_environment(make):
    testing.check_env(make)
    testing.check_leaks(make)


def test_determinism(make):
    testing.check_determinism(make)


def test_snapshots(make):
    testing.check_snapshot(make)


def test_group():
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 8))


def test_the_group_check_takes_an_action_that_does_not_end_the_episode():
    env = SearchQAEnv(split="sample")
    env.reset(seed=0)
    before = env.snapshot()
    assert several._non_final_action(env, ["answer[x]", "search[river]", "junk"]) == "search[river]"
    assert several._non_final_action(env, ["answer[x]", "answer[y]"]) == "answer[x]"
    assert env.snapshot() == before


def test_sixteen_environments_at_once():
    testing.check_vector(ENV_ID, num_envs=16, split="test")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retrieved", "doc"),
        ("retrieved", [3]),
        ("searches", 0),
        ("searches", -1),
        ("searches", True),
        ("answer_retrieved", 1),
        ("answer", 3),
    ],
)
def test_damaged_states_are_refused(name, value):
    env = SearchQAEnv(split="sample")
    env.reset(seed=1)
    env.step("search[the river]")
    snapshot = json.loads(env.snapshot())
    assert snapshot["engine"]["retrieved"]
    env.restore(json.dumps(snapshot).encode())
    snapshot["engine"][name] = value
    with pytest.raises(BadSnapshot, match="engine state is damaged"):
        env.restore(json.dumps(snapshot).encode())
