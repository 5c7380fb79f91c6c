"""Thoughts by their tokens, and their limit: closed with tokens that are read and not trained."""

import asyncio

import pytest
import recorded_evaluations
import torch

from harness import prompts
from harness.annotators.critic import Critic
from harness.config import Config, EvaluationConfig, TinyConfig, build, check, check_evaluation
from harness.evaluation.episodes import describe_episode, episode_record
from harness.evaluation.figures import summarise
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.local_answers import GeneratedTokens, generate_in_parts
from harness.inference.completers.openai import OpenAICompleter
from harness.model import tiny
from harness.model.chat_templates import trusted
from harness.model.packing import samples, single_turn, to_batch
from harness.model.policy import Policy
from harness.model.tokenizer import ThoughtLimit, find_thought
from harness.reporting.results.loading import read_through
from harness.reporting.tables.details import to_markdown
from harness.rollouts import rollout_files
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.training.players.player import rollout_figures
from harness.types.errors import ConfigError
from harness.types.task_draws import TaskDraw

CORRIDOR = "agentgyms/Corridor-v0"
WORDS = "you are in a corridor go left right <think> </think> <action>look</action> \n"
OPENED = trusted.TINY + "{% if add_generation_prompt %}<think>\n{% endif %}"
ANSWER_ENDS = 40
"""Tokens below this end an answer, so that some end early."""


def make_policy(template, *, tags=True):
    tokenizer = tiny.make_tokenizer([WORDS, *WORDS.split()] * 20, 400, (), template)
    if tags:
        tokenizer.add_tokens(["<think>", "</think>"])
    size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=64, max_length=512)
    policy = Policy(tiny.make_model(size, tokenizer, seed=1), tokenizer, "cpu")
    policy.model.generation_config.eos_token_id = list(range(2, ANSWER_ENDS))
    return policy


@pytest.fixture(scope="module")
def opened():
    """A random model whose prompt opens a thought."""
    return make_policy(OPENED)


def complete(completer, samplings):
    async def everything():
        calls = [
            completer.complete([{"role": "user", "content": "go left " * (i % 3 + 1)}], one, i)
            for i, one in enumerate(samplings)
        ]
        return await asyncio.gather(*calls)

    return asyncio.run(everything())


def play_corridor(policy, sampling, context="window", record=False):
    pool = EnvPool(CORRIDOR, 4, 64, record=record, max_turns=5)
    task_id = pool.take().envs[0].tasks[0]
    agent = Agent(HFCompleter(policy), prompts.load("compact", CORRIDOR), sampling, 1, context)
    options = CollectOptions(pause_s=0)
    return asyncio.run(collect(pool, [TaskDraw(task_id, 5)], agent, seed=1, options=options))


@pytest.mark.parametrize("tags", [True, False])
def test_a_thought_is_closed_at_its_limit_and_the_answer_goes_on(tags):
    policy = make_policy(OPENED, tags=tags)
    limited, free = Sampling(1.0, 24, max_thought_tokens=5), Sampling(1.0, 24)
    got = complete(HFCompleter(policy, max_batch=4), [limited, free] * 12)
    closing = policy.encode("\n</think>\n\n")
    cut = [one for one in got if one.inserted != (0, 0)]
    assert cut
    assert all(len(one.response_ids) <= 24 for one in got)
    for one in got[::2]:
        if "</think>" not in policy.chat_tokenizer.decode(one.response_ids[:5]):
            ended_before = one.finished and len(one.response_ids) <= 5
            assert ended_before or one.inserted == (5, 5 + len(closing))
    for one in cut:
        start, end = one.inserted
        assert one.response_ids[start:end] == closing
        assert len(one.logprobs) == one.num_sampled == len(one.response_ids) - len(closing)
        assert one.text.startswith("<think>\n")
        assert "</think>\n\n" in one.text
    assert all(one.inserted == (0, 0) for one in got[1::2])
    assert any(len(one.response_ids) > one.inserted[1] for one in cut)
    assert {one.thought_tokens for one in cut} == {5}
    assert all(one.cut_thought for one in cut)
    assert max(one.thought_tokens for one in got[1::2]) > 5
    assert all(one.cut_thought == ("</think>" not in one.text) for one in got[1::2])


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_inserted_tokens_are_read_and_not_trained(opened, context):
    """The log-probabilities are the policy's own, also behind the inserted tokens."""
    rollouts = play_corridor(opened, Sampling(1.0, 16, max_thought_tokens=4), context)
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    assert any(turn.completion.inserted[1] for turn in turns)
    rows = samples(rollouts, torch.arange(len(turns)).numpy() + 1.0, context)
    assert len(rows) == (len(rollouts) if context == "transcript" else len(turns))
    sampled = sum(turn.completion.num_sampled for turn in turns)
    assert sum(row.num_actions for row in rows) == sampled
    batch = to_batch(rows, opened.pad_id)
    assert int(batch.action_mask.sum()) == sampled
    assert not batch.advantage[~batch.action_mask].any()
    with torch.no_grad():
        logprob, _ = opened.logprobs(batch)
    torch.testing.assert_close(logprob, batch.old_logprob, atol=1e-4, rtol=0)


def test_requests_in_parts_give_what_one_running_answer_gives(opened):
    """At temperature 0, where random numbers have no part in it."""
    sampling = Sampling(0.0, 20, max_thought_tokens=6)
    (running,) = complete(HFCompleter(opened), [sampling])
    asked = []

    async def generate(ids, sampling, seed):
        asked.append((len(ids), seed))
        tokens = torch.tensor([ids])
        out = opened.model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=False,
            max_new_tokens=sampling.max_tokens,
        )
        made = tuple(out[0, len(ids) :].tolist())
        return GeneratedTokens(made, (0.0,) * len(made), made[-1] in opened.stop_ids)

    made = asyncio.run(
        generate_in_parts(opened.chat_tokenizer, running.prompt_ids, sampling, 7, generate)
    )
    assert made.ids == running.response_ids
    assert (made.inserted, made.finished) == (running.inserted, running.finished)
    assert made.inserted[0] == 6
    sizes, seeds = zip(*asked, strict=True)
    assert sizes == (len(running.prompt_ids), len(running.prompt_ids) + made.inserted[1])
    assert len(set(seeds)) == 2
    assert seeds[0] == 7


@pytest.mark.parametrize("tags", [True, False])
def test_a_thought_that_the_model_opens_counts_from_its_tag(tags):
    policy = make_policy(trusted.TINY, tags=tags)
    tokenizer, encode = policy.chat_tokenizer, policy.encode
    tag, words, rest = encode("<think>"), encode("go left right"), encode("<action>look</action>")
    assert find_thought(tokenizer, words) is None
    assert find_thought(tokenizer, words + tag + words)[:2] == (
        len(words),
        len(words + tag + words),
    )
    closed = find_thought(tokenizer, tag + words + encode("</think>") + rest)
    assert closed == (0, len(tag + words), True)
    limit = ThoughtLimit(tokenizer, 40)
    assert limit.room(()) == limit.room(words) == 40
    assert limit.room(words + tag) == 40 - len(tag)
    assert limit.room(words + tag + words * 9) == 40 - len(tag + words * 9)
    assert limit.room(tag + words * 99) == 0
    assert limit.room(tag + encode("</think>")) is None
    assert limit.room(encode("go <th")) < 40
    assert ThoughtLimit(tokenizer, None).room(tag) is None


def test_a_thought_that_the_prompt_has_closed_has_no_limit():
    nothink = OPENED.replace("<think>\n", "<think>\n\n</think>\n\n")
    tokenizer = make_policy(nothink).chat_tokenizer
    assert find_thought(tokenizer, tokenizer.encode("go left")) == (0, 0, True)
    assert ThoughtLimit(tokenizer, 3).room(()) is None


def test_a_value_is_predicted_once_for_a_turn_with_inserted_tokens(opened):
    (one,) = complete(HFCompleter(opened), [Sampling(0.0, 20, max_thought_tokens=6)])
    batch = to_batch([single_turn(one, 1.0)], opened.pad_id)
    critic = Critic.__new__(Critic)
    critic._context = type("Context", (), {"rows": "turn"})
    where = critic._value_mask(batch)[0].nonzero()[:, 0].tolist()
    assert where == [len(one.prompt_ids)]


def test_figures_tell_how_long_thoughts_are(opened, tmp_path):
    sampling = Sampling(1.0, 16, max_thought_tokens=4)
    rollouts = play_corridor(opened, sampling, record=True)
    answers = [turn.completion for rollout in rollouts for turn in rollout.turns]
    lengths = [one.thought_tokens for one in answers]
    cut = sum(one.cut_thought for one in answers) / len(answers)
    figures = rollout_figures(rollouts, 0)
    assert figures["rollout/thought_tokens"] == pytest.approx(sum(lengths) / len(lengths))
    assert figures["rollout/thought_tokens_max"] == max(lengths) == 4
    assert figures["rollout/cut_thought_share"] == cut > 0
    for rollout in rollouts:
        describe_episode(
            rollout.recording, index=0, seed=0, trial=1, stop_reason=rollout.stop_reason
        )
    records = [episode_record(rollout.recording) for rollout in rollouts]
    counted = summarise(records, env_id=CORRIDOR, seeds=(0,), trials=1, prices=None)["thoughts"]
    assert counted == {
        "tokens": pytest.approx(sum(lengths) / len(lengths)),
        "longest": 4,
        "cut_share": pytest.approx(cut),
    }
    loaded = recorded_evaluations.evaluation(tmp_path / "react", num_tasks=1, seeds=(0,))
    loaded.result["figures"]["thoughts"] = counted
    read_through(loaded.result)
    assert "tokens per turn, the longest 4, cut off" in to_markdown(loaded)


def test_files_keep_which_tokens_were_inserted(opened, tmp_path):
    rollouts = play_corridor(opened, Sampling(1.0, 16, max_thought_tokens=4))
    assert any(t.completion.inserted[1] for r in rollouts for t in r.turns)
    path = tmp_path / "rollouts.jsonl"
    rollout_files.write(path, rollouts)
    again = rollout_files.read(path).rollouts
    assert [r.turns for r in again] == [r.turns for r in rollouts]


def test_settings_that_leave_no_answer_are_refused():
    def given(thought):
        values = {"agent": {"max_tokens": 64, "max_thought_tokens": thought}}
        return build(Config, values | {"warmstart": {"episodes": 1}})

    check(given(63))
    with pytest.raises(ConfigError, match="max_thought_tokens is 64, which leaves no tokens"):
        check(given(64))
    values = {"agent": {"max_thought_tokens": 70}, "sampling": {"max_tokens": 64}}
    with pytest.raises(ConfigError, match=r"at most sampling\.max_tokens = 64"):
        check_evaluation(build(EvaluationConfig, values))


def test_a_server_has_no_limit_of_thoughts():
    server = OpenAICompleter("model", "http://127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"max_thought_tokens = 9 needs a model in this process"):
        asyncio.run(server.complete([], Sampling(max_thought_tokens=9), 0))
