"""Generation in mixed precision: with a copy of the weights in bfloat16 that follows the policy."""

import pytest
import torch
from small_training import small

from harness.config import LoraConfig
from harness.inference.completers.decoding import DecodeBatch
from harness.inference.generation import CopyGenerator, PolicyGenerator, make_policy_generator
from harness.model.packing import Sample, to_batch
from harness.model.policy import Policy


@pytest.fixture
def mixed(policy):
    return Policy(policy.trainable_copy().model, policy.tokenizer, "cpu", precision="mixed")


def logprobs_of(policy, tokens):
    """Return the distribution after each prompt, as generation computes it."""
    with torch.inference_mode():
        logits = DecodeBatch(policy).prefill([0], [tokens])
    return torch.log_softmax(logits.float(), -1)[0]


def test_a_copy_in_bfloat16_follows_the_policy(mixed, tmp_path):
    generator = make_policy_generator(small(tmp_path, "copy"), mixed, mixed.processes)
    copy = generator.completer.policy
    head = copy.model.get_output_embeddings().weight
    kinds = {w.dtype for w in copy.model.parameters() if w is not head}
    assert (kinds, head.dtype) == ({torch.bfloat16}, torch.float32)
    assert {w.dtype for w in mixed.model.parameters()} == {torch.float32}
    prompt = [5, 6, 7, 8]
    before = logprobs_of(copy, prompt)
    with torch.no_grad():
        for weight in mixed.model.parameters():
            weight.add_(0.05 * torch.sin(torch.arange(weight.numel()).view(weight.shape)))
    assert torch.equal(logprobs_of(copy, prompt), before)
    generator.sync()
    after = logprobs_of(copy, prompt)
    row = Sample(tuple(prompt), (int(after.argmax()),), (0.0,), 1.0)
    with torch.no_grad():
        scored = mixed.logprobs(to_batch([row], 0))[0][0, -1]
    assert abs(float(scored - after.max())) < 0.05
    assert not torch.allclose(before, after, atol=0.05)


def test_adapters_share_no_weight_with_a_rounded_copy(mixed, tmp_path):
    mixed.adapt(LoraConfig(rank=2), "base", 0)
    copy = CopyGenerator(small(tmp_path, "copy"), mixed, mixed.processes)._copy
    body = copy.model.base_model
    assert {w.dtype for w in body.parameters()} == {torch.bfloat16}
    assert {w.dtype for w in mixed.model.parameters()} == {torch.float32}
    assert not any(w.requires_grad for w in copy.model.parameters())


def test_in_full_precision_the_policy_itself_generates(policy, tmp_path):
    generator = make_policy_generator(small(tmp_path, "own"), policy, policy.processes)
    assert type(generator) is PolicyGenerator
    assert generator.completer.policy is policy
