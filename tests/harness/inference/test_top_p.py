"""Sampling within the most likely tokens, and the tokens that generation counts."""

import asyncio
import math
from collections import Counter

import pytest
import torch

from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter, _nucleus
from harness.types.errors import ConfigError
from harness.types.rollout import Usage


def complete(completer, requests):
    """Answer (text, sampling, seed) all at once."""

    async def everything():
        calls = [
            completer.complete([{"role": "user", "content": text}], sampling, seed)
            for text, sampling, seed in requests
        ]
        return await asyncio.gather(*calls)

    return asyncio.run(everything())


def test_the_nucleus_by_hand():
    probability = torch.tensor([[0.1, 0.5, 0.15, 0.25]] * 5)
    share = torch.tensor([0.4, 0.5, 0.6, 0.76, 1.0])
    cut = _nucleus(probability.log(), share).exp()
    third = 1 / 3
    expected = [
        [0, 1, 0, 0],  # the first token passes the share alone
        [0, 1, 0, 0],  # and reaches it exactly
        [0, 2 * third, 0, third],
        [0, 0.5 / 0.9, 0.15 / 0.9, 0.25 / 0.9],
        [0.1, 0.5, 0.15, 0.25],
    ]
    torch.testing.assert_close(cut, torch.tensor(expected, dtype=torch.float32))
    assert torch.equal(_nucleus(probability.log(), share)[4], probability.log()[4])


def test_few_likely_tokens_are_drawn_as_often_as_they_should_be(policy):
    n, temperature, top_p = 1500, 0.8, 0.5
    sampling = Sampling(temperature, 1, top_p)
    drawn = complete(HFCompleter(policy), [("go", sampling, seed) for seed in range(n)])
    ids = torch.tensor([policy.encode_chat([{"role": "user", "content": "go"}])])
    with torch.no_grad():
        probability = (policy.model(ids).logits[0, -1] / temperature).softmax(-1)
    nucleus, total = {}, 0.0
    for token in probability.argsort(descending=True).tolist():
        if total >= top_p:
            break
        nucleus[token] = float(probability[token])
        total += nucleus[token]
    counts = Counter(c.response_ids[0] for c in drawn)
    assert 3 < len(nucleus) < len(probability) / 2
    assert set(counts) <= set(nucleus)
    for token, count in counts.most_common(3):
        expected = nucleus[token] / total * n
        assert abs(count - expected) < 5 * expected**0.5
    for completion in drawn:
        expected = math.log(nucleus[completion.response_ids[0]] / total)
        assert completion.logprobs[0] == pytest.approx(expected, abs=1e-4)


def test_who_samples_from_all_tokens_is_not_touched_by_company_that_does_not(policy):
    whole = [("go", Sampling(t, 9), seed) for t in (1.0, 0.4, 0.0) for seed in range(5)]
    alone = complete(HFCompleter(policy), whole)
    cut = [("go", Sampling(1.0, 9, 0.3), seed) for seed in range(5)]
    mixed = complete(HFCompleter(policy), [*whole, *cut])
    assert [c.text for c in mixed[:15]] == [c.text for c in alone]
    for one, other in zip(alone, mixed, strict=False):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)  # other shapes, other sums
    assert [c.text for c in mixed[15:]] != [c.text for c in alone[:5]]


def test_the_most_likely_token_needs_no_nucleus(policy):
    with_share = complete(HFCompleter(policy), [("go", Sampling(0.0, 9, 0.1), 0)])
    assert with_share == complete(HFCompleter(policy), [("go", Sampling(0.0, 9), 0)])


def test_a_tiny_share_takes_the_most_likely_token(policy):
    requests = [("go", Sampling(1.0, 9, 1e-6), seed) for seed in range(4)]
    likely = complete(HFCompleter(policy), [("go", Sampling(0.0, 9), 0)])[0]
    for completion in complete(HFCompleter(policy), requests):
        assert completion.response_ids == likely.response_ids
        assert completion.logprobs == (0.0,) * len(likely.response_ids)


@pytest.mark.parametrize("top_p", [0.0, -0.5, 1.01, math.nan])
def test_a_share_that_is_none_is_refused(policy, top_p):
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        complete(HFCompleter(policy), [("go", Sampling(1.0, 9, top_p), 0)])


def test_tokens_are_counted(policy):
    for completion in complete(HFCompleter(policy), [("go", Sampling(1.0, 9), s) for s in (1, 2)]):
        read, said = len(completion.prompt_ids), len(completion.response_ids)
        assert completion.usage == Usage(read, said, 1)
