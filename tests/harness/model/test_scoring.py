"""Scores of given tokens, against the policy's own passes."""

import numpy as np
import pytest
import torch
from sequences import sample

from harness.model.logprobs import score_tokens
from harness.model.packing import Sample, to_batch

ROWS = [sample(5, 3), sample(2, 1), sample(9, 6), sample(2, 1), sample(3, 4)]
TRANSCRIPT = Sample(
    (1, 2), (7, 8, 90, 91, 9, 92, 10), (0.0,) * 4, 0.0, turn=(0, 0, -1, -1, 1, -1, 2)
)


@pytest.mark.parametrize("max_tokens", [8192, 20, 1])
@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_scores_keep_the_order_and_equal_single_passes(policy, max_tokens, temperature):
    rows = [*ROWS, TRANSCRIPT]
    got = score_tokens(policy, rows, temperature, max_tokens)
    for row, scores in zip(rows, got, strict=True):
        batch = to_batch([row], policy.pad_id)
        with torch.no_grad():
            logprob, entropy = policy.logprobs(batch, temperature)
        assert scores.logprob.shape == scores.entropy.shape == (row.num_actions,)
        assert scores.logprob.dtype == np.float64
        own = batch.action_mask
        np.testing.assert_allclose(scores.logprob, logprob[own].numpy(), atol=2e-5)
        np.testing.assert_allclose(scores.entropy, entropy[own].numpy(), atol=2e-5)


def test_scores_are_those_of_transformers(policy):
    (scores,) = score_tokens(policy, [TRANSCRIPT], temperature=0.5)
    tokens = torch.tensor([TRANSCRIPT.prompt_ids + TRANSCRIPT.response_ids])
    with torch.no_grad():
        told = (policy.model(tokens).logits[0] / 0.5).log_softmax(-1)
    for value, spread, at in zip(scores.logprob, scores.entropy, (2, 3, 6, 8), strict=True):
        before = told[at - 1]
        assert value == pytest.approx(float(before[tokens[0, at]]), abs=2e-5)
        assert spread == pytest.approx(float(-(before.exp() * before).sum()), abs=2e-5)


def test_equal_samples_pass_once_and_nothing_is_left_behind(policy, monkeypatch):
    passed = []
    logprobs = policy.logprobs

    def counted(batch, temperature):
        passed.append(len(batch.tokens))
        assert not policy.model.training
        return logprobs(batch, temperature)

    monkeypatch.setattr(policy, "logprobs", counted)
    policy.model.zero_grad()
    policy.model.train()
    got = score_tokens(policy, ROWS)
    assert policy.model.training
    policy.model.eval()
    assert sum(passed) == 4
    np.testing.assert_array_equal(got[1].logprob, got[3].logprob)
    assert all(parameter.grad is None for parameter in policy.model.parameters())
    assert score_tokens(policy, []) == []


def test_entropy_carries_a_gradient_only_where_it_is_asked_for(policy):
    batch = to_batch(ROWS[:2], policy.pad_id)
    assert not policy.logprobs(batch)[1].requires_grad
    logprob, entropy = policy.logprobs(batch, entropy_gradient=True)
    assert logprob.requires_grad
    entropy.sum().backward()
    assert policy.model.get_input_embeddings().weight.grad.abs().sum() > 0
    policy.model.zero_grad()
