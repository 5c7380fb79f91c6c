"""Prompts that come again and again: answers as before, with less said by the model."""

import asyncio

import pytest

from harness.inference.completers import Sampling, next_tokens, repeated_prompts
from harness.inference.completers.decoding import DecodeBatch
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.repeated_prompts import RepeatedPrompts

PROMPTS = ["go", "take mug 2 from shelf", "put a clean plate in cabinet " * 3, "door", "key left"]
SAMPLINGS = [Sampling(1.0, 9), Sampling(0.4, 9, 0.9), Sampling(0, 9)]


def ask(text):
    return [{"role": "user", "content": text}]


@pytest.fixture
def read(monkeypatch):
    """Count the prompts that the model reads and the tokens that it says."""
    counts = {"prompts": 0, "tokens": 0}
    prefill, decode = DecodeBatch.prefill, DecodeBatch.decode

    def counted_prefill(batch, rows, prompts, images=()):
        counts["prompts"] += len(prompts)
        return prefill(batch, rows, prompts, images)

    def counted_decode(batch):
        counts["tokens"] += len(batch.rows)
        return decode(batch)

    monkeypatch.setattr(DecodeBatch, "prefill", counted_prefill)
    monkeypatch.setattr(DecodeBatch, "decode", counted_decode)
    return counts


async def answers(completer, rounds=1):
    """Return answers to each prompt by each sampling, of several seeds, round by round."""
    got = []
    for first in range(0, 6 * rounds, 6):
        got += await asyncio.gather(
            *(
                completer.complete(ask(prompt), sampling, seed)
                for seed in range(first, first + 6)
                for prompt in PROMPTS
                for sampling in SAMPLINGS
            )
        )
    return got


def same(some, others):
    assert [one.response_ids for one in some] == [one.response_ids for one in others]
    for one, other in zip(some, others, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
        assert one.finished == other.finished


def test_answers_are_those_of_each_prompt_alone(policy, read):
    plain = asyncio.run(answers(HFCompleter(policy), rounds=3))
    before = dict(read)
    read.update(prompts=0, tokens=0)
    repeated = asyncio.run(answers(RepeatedPrompts(HFCompleter(policy)), rounds=3))
    same(repeated, plain)
    assert len({one.response_ids for one in repeated}) > 5 * len(PROMPTS)
    assert read["prompts"] < before["prompts"]
    assert read["tokens"] < 0.9 * before["tokens"]


def test_what_was_answered_once_needs_no_model(policy, read):
    completer = RepeatedPrompts(HFCompleter(policy))
    first = asyncio.run(answers(completer))
    read.update(prompts=0, tokens=0)
    assert asyncio.run(answers(completer)) == first
    assert read == {"prompts": 0, "tokens": 0}


def test_a_large_vocabulary_shares_the_reading_of_prompts_alone(policy, read, monkeypatch):
    plain = asyncio.run(answers(HFCompleter(policy)))
    read.update(prompts=0, tokens=0)
    monkeypatch.setattr(repeated_prompts, "LARGEST_VOCABULARY", len(policy.tokenizer) - 1)
    same(asyncio.run(answers(RepeatedPrompts(HFCompleter(policy)))), plain)
    assert read["prompts"] == len(PROMPTS)


def test_little_memory_changes_no_answer(policy, monkeypatch):
    monkeypatch.setattr(next_tokens, "LARGEST_MEMORY", 4 * 5 * policy.model.config.vocab_size)
    plain = asyncio.run(answers(HFCompleter(policy)))
    same(asyncio.run(answers(RepeatedPrompts(HFCompleter(policy)))), plain)


def test_others_ask_when_the_one_that_asked_is_cancelled(policy):
    completer = RepeatedPrompts(HFCompleter(policy))

    async def cancelled():
        calls = [
            asyncio.ensure_future(completer.complete(ask("go"), SAMPLINGS[0], seed))
            for seed in range(8)
        ]
        await asyncio.sleep(0)
        calls[0].cancel()
        await asyncio.sleep(0)
        calls[3].cancel()
        return await asyncio.gather(*calls, return_exceptions=True)

    got = asyncio.run(cancelled())
    plain = asyncio.run(alone(HFCompleter(policy), range(8)))
    for seed, one in enumerate(got):
        if seed in (0, 3):
            assert isinstance(one, asyncio.CancelledError)
        else:
            assert one.response_ids == plain[seed].response_ids


async def alone(completer, seeds):
    return [await completer.complete(ask("go"), SAMPLINGS[0], seed) for seed in seeds]


def test_a_fault_of_the_model_reaches_all_that_wait(policy, monkeypatch):
    completer, decode = RepeatedPrompts(HFCompleter(policy)), DecodeBatch.decode

    def broken(batch):
        raise RuntimeError("out of memory")

    async def everyone():
        calls = [completer.complete(ask("go"), SAMPLINGS[0], seed) for seed in range(8)]
        return await asyncio.gather(*calls, return_exceptions=True)

    monkeypatch.setattr(DecodeBatch, "decode", broken)
    assert "out of memory" in {str(one) for one in asyncio.run(everyone())}
    monkeypatch.setattr(DecodeBatch, "decode", decode)
    got, plain = asyncio.run(everyone()), asyncio.run(alone(HFCompleter(policy), range(8)))
    assert [one.response_ids for one in got] == [one.response_ids for one in plain]
