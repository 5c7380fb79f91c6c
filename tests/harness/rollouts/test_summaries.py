"""The context `summary`: the model summarises its chat; the summary is trained like an answer."""

import asyncio
import json

import numpy as np
import pytest
import torch
from chat_server import ChatServer
from evaluation_helpers import episodes, last_message, result, served, walker
from small_training import lines, run, small

from harness import prompts
from harness.annotators.context import AnnotatorContext
from harness.annotators.critic import Critic
from harness.config import Config, TinyConfig, build, check
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.model import tiny
from harness.model.packing import samples, to_batch
from harness.model.policy import Policy
from harness.reporting import run_and_report
from harness.rollouts import rollout_files
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.types.errors import ConfigError
from harness.types.rollout import StopReason, lengths_of
from harness.types.task_draws import TaskDraw

CORRIDOR = "agentgyms/Corridor-v0"
WORDS = "you are in a corridor go left right door key box locked open take put summary turns"
REQUEST = "Your context is nearly full."


@pytest.fixture(scope="module")
def policy():
    tokenizer = tiny.make_tokenizer([WORDS, *WORDS.split()] * 20, 400)
    size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=64, max_length=3000)
    return Policy(tiny.make_model(size, tokenizer, seed=1), tokenizer, "cpu")


@pytest.fixture(scope="module")
def rollouts(policy):
    """Episodes of eight turns; about two turns fit between two summaries."""
    pool = EnvPool(CORRIDOR, 3, 64, record=True, max_turns=8)
    task_id = pool.take().envs[0].tasks[0]
    agent = Agent(
        HFCompleter(policy),
        prompts.load("compact", CORRIDOR),
        Sampling(1.0, 12),
        0,
        "summary",
        summary_tokens=160,
    )
    options = CollectOptions(pause_s=0)
    return asyncio.run(collect(pool, [TaskDraw(task_id, 5)], agent, seed=1, options=options))


def test_a_summary_is_no_step_of_the_environment(rollouts):
    for rollout in rollouts:
        assert len(rollout.turns) == 8
        assert rollout.stop_reason is StopReason.TURN_LIMIT
        assert len(rollout.recording.turns) == 9
        summaries = [turn.summary is not None for turn in rollout.turns]
        assert 1 < sum(summaries) < 8
        assert not summaries[0]
        recorded = ["summary" in turn.agent for turn in rollout.recording.turns[1:]]
        assert recorded == summaries


def test_the_chat_goes_on_from_the_first_prompt_and_the_summary(policy, rollouts):
    for rollout in rollouts:
        first = policy.chat_tokenizer.decode(rollout.turns[0].completion.prompt_ids)
        for before, turn in zip(rollout.turns, rollout.turns[1:], strict=False):
            read = before.completion.prompt_ids + before.completion.response_ids
            if turn.summary is None:
                assert turn.completion.prompt_ids[: len(read)] == read
                continue
            request = turn.summary.prompt_ids
            assert request[: len(read)] == read
            assert REQUEST in policy.chat_tokenizer.decode(request[len(read) :])
            prompt = policy.chat_tokenizer.decode(turn.completion.prompt_ids)
            assert prompt.startswith(first)
            assert "This is your summary of them:" in prompt
            assert len(turn.completion.prompt_ids) < len(request)


def test_each_sampled_token_is_trained_once_with_the_advantage_of_its_turn(policy, rollouts):
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    advantage = np.arange(1.0, len(turns) + 1)
    rows = samples(rollouts, advantage, "summary")
    summaries = sum(turn.summary is not None for turn in turns)
    assert len(rows) == len(rollouts) + summaries
    assert sum(row.num_actions for row in rows) == sum(turn.num_sampled for turn in turns)
    given = [value for row in rows for value in row.advantage]
    assert given == [
        a for a, turn in zip(advantage, turns, strict=True) for _ in range(turn.num_sampled)
    ]
    by_token = [np.full(turn.num_sampled, a) for a, turn in zip(advantage, turns, strict=True)]
    assert samples(rollouts, by_token, "summary") == rows
    assert lengths_of(rollouts).tolist() == [turn.num_sampled for turn in turns]
    batch = to_batch(rows, policy.pad_id)
    with torch.no_grad():
        logprob, _ = policy.logprobs(batch)
    torch.testing.assert_close(logprob, batch.old_logprob, atol=1e-4, rtol=0)


@pytest.mark.parametrize("tokens", [True, False])
def test_files_keep_summaries(rollouts, tmp_path, tokens):
    path = tmp_path / "rollouts.jsonl"
    rollout_files.write(path, rollouts, tokens=tokens)
    again = [turn for one in rollout_files.read(path).rollouts for turn in one.turns]
    own = [turn for one in rollouts for turn in one.turns]
    assert [t.summary and t.summary.text for t in again] == [
        t.summary and t.summary.text for t in own
    ]
    if tokens:
        assert again == own
    line = json.loads(path.read_text().splitlines()[1])
    line["turns"][0]["summary"] = "short"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(Exception, match="'summary' of turn 0 must be an object, got str"):
        rollout_files.read(path)


def summing_walker(messages):
    """Play the corridor, and summarise when asked."""
    if last_message(messages).startswith(REQUEST):
        return "<think>hm</think>I walked."
    return walker(messages)


def test_an_evaluation_of_a_served_model_summarises(tmp_path):
    with ChatServer(summing_walker) as server:
        settings = served(
            tmp_path,
            server,
            agent__context="summary",
            agent__summary_tokens=150,
            run__tasks=3,
        )
        folder = run_and_report.run(settings)
        asked = [last_message(one.body["messages"]) for one in server.requests]
    found = result(folder)
    steps = [turn for episode in episodes(folder) for turn in episode[2:]]
    written = [turn["agent"]["summary"]["answer"] for turn in steps if "summary" in turn["agent"]]
    assert written
    assert set(written) == {"<think>hm</think>I walked."}
    assert sum(text.startswith(REQUEST) for text in asked) == len(written)
    assert found["figures"]["tokens"]["calls"] == len(steps) + len(written)
    assert found["figures"]["success"]["mean"] == 1
    assert any("summary of them:\nI walked." in text for text in asked)
    assert set(found["agent"]["prompt_versions"]) >= {"default/summarise", "default/summary"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "rows"),
    [("gigpo", "turn"), ("ppo", "token"), ("hcapo", "turn"), ("oprl", "turn")],
)
def test_training_steps_learn_from_summaries(tmp_path, method, rows):
    trainer = run(
        small(
            tmp_path,
            method,
            f"method.name='{method}'",
            f"method.rows='{rows}'",
            "agent.context='summary'",
            "agent.summary_tokens=60",
            "agent.style='compact'",
            "agent.max_tokens=14",
            "run.steps=1",
            "rollout.tasks_per_step=2",
            "rollout.group_size=2",
            "rollout.old_logprobs='recompute'",
            "eval.tasks=1",
        )
    )
    (step,) = [one for one in lines(trainer) if "update/loss" in one]
    assert step["rollout/summaries"] > 0
    assert step["mismatch/difference_max"] < 1e-3
    assert np.isfinite(step["update/loss"])


def test_a_critic_of_turns_is_refused(policy):
    context = AnnotatorContext(policy, context="summary")
    with pytest.raises(ConfigError, match=r"method\.rows = 'token'"):
        Critic(None, context)


def test_a_summary_must_fit():
    agent = {"context": "summary", "max_tokens": 512, "max_context": 4600}
    values = {"agent": agent, "warmstart": {"episodes": 1}}
    with pytest.raises(ConfigError, match="does not fit behind it"):
        check(build(Config, values))
    check(build(Config, values | {"agent": agent | {"summary_tokens": 4000}}))
