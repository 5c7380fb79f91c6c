"""Training with shared prefixes: the same numbers as one by one, from fewer tokens."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rollouts import some_rollouts
from sequences import branching_tokens, sample
from small_training import lines, run, small
from transformers import (
    FalconConfig,
    FalconForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from harness import config, losses
from harness.config import LoraConfig, OptimizerConfig
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample, micro_batch_indices, samples, to_batch
from harness.model.policy import Policy
from harness.preflight.checks import check
from harness.training import setup
from harness.training.learner import Learner
from harness.types.errors import ConfigError
from tests.harness.tiny_families import make_policy, make_seeing

TERMS = {"kl_coefficient": 0.1, "entropy_coefficient": 0.01, "ratio": "turn"}


def sharing(policy):
    twin = policy.trainable_copy()
    twin.set_share_prefixes(True)
    return twin


def conversation(tokens, chance):
    """A training sequence of tokens: turns of the policy, and of the environment in between."""
    start = int(chance.integers(1, len(tokens)))
    ends = np.cumsum(chance.integers(1, 6, len(tokens) - start)).tolist()
    place = [
        i // 2 if i % 2 == 0 else -1 for i in np.searchsorted(ends, range(len(tokens) - start))
    ]
    count = sum(k >= 0 for k in place)
    return Sample(
        (*tokens[:start].tolist(),),
        (*tokens[start:].tolist(),),
        (*chance.normal(-3, 1, count).tolist(),),
        (*chance.normal(0, 1, count).tolist(),),
        turn=(*place,),
    )


def learned(policy, rows, max_tokens):
    """Loss, log-probabilities, entropies and gradients of samples; and the tokens that passed."""
    policy.model.zero_grad()
    total, scores, passed = 0.0, {}, 0
    for part, batch in policy.indexed_batches(rows, max_tokens):
        logprob, entropy = policy.logprobs(batch, 0.7, entropy_gradient=True)
        reference = logprob.detach() - 0.1 * batch.action_mask
        own = replace(batch, reference_logprob=reference)
        count = {"num_tokens": sum(row.num_actions for row in rows), "num_sequences": len(rows)}
        loss, _ = losses.get("clipped")(logprob, own, entropy=entropy, **count, **TERMS)
        loss.backward()
        total, passed = total + loss.detach(), passed + batch.num_tokens
        for i, mask, *told in zip(part, batch.action_mask, logprob, entropy, strict=True):
            scores[i] = torch.stack([one[mask].detach() for one in told])
    slopes = {n: p.grad.clone() for n, p in policy.model.named_parameters() if p.grad is not None}
    return total, torch.cat([scores[i] for i in range(len(rows))], 1), slopes, passed


def assert_equal(one, other):
    torch.testing.assert_close(one[0], other[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(one[1], other[1], atol=1e-5, rtol=0)
    assert one[2].keys() == other[2].keys()
    for name, slope in one[2].items():
        torch.testing.assert_close(slope, other[2][name], atol=1e-5, rtol=1e-5, msg=name)


FAMILIES = {family: make_policy(family) for family in ("qwen2", "qwen3", "llama")}


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=6)
@given(made=branching_tokens(), limit=st.sampled_from([60, 10**6]), seed=st.integers(0, 99))
def test_shared_prefixes_give_the_same_loss_and_gradient(family, made, limit, seed):
    policy, chance = FAMILIES[family], np.random.default_rng(seed)
    rows = [conversation(tokens, chance) for tokens in made]
    one, shared = learned(policy, rows, limit), learned(sharing(policy), rows, limit)
    assert_equal(one, shared)
    assert shared[3] <= one[3] == sum(row.length for row in rows)


def branched(policy, context):
    """Rollouts of groups, with siblings that end otherwise in their last turn."""
    rollouts = some_rollouts(policy, context)
    return rollouts + [ending_otherwise(one, 40 + i) for i, one in enumerate(rollouts)]


def ending_otherwise(one, token):
    *before, last = one.turns
    said = replace(last.completion, response_ids=(*last.completion.response_ids[:-1], token))
    turns = [*before, replace(last, completion=said)]
    return replace(one, member=9, parent=one.member, branch_turn=len(before), turns=turns)


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_an_update_does_not_depend_on_sharing(policy, context):
    rollouts = branched(policy, context)
    credit = np.linspace(-1, 1, sum(len(r.turns) for r in rollouts))
    rows = samples(rollouts, credit, context, shared=False)
    made = []
    for own in (policy.trainable_copy(), sharing(policy)):
        told = score_tokens(own, rows, max_tokens=150)
        cut = OptimizerConfig(learning_rate=1e-3, mini_batches=2, micro_batch_tokens=200)
        learner = Learner(own, policy, cut, "clipped", {"kl_coefficient": 0.1}, 1.0)
        figures = learner.update(rows, step=0, seed=0)
        weights = torch.cat([p.detach().flatten() for p in own.model.parameters()])
        made.append((np.concatenate([one.logprob for one in told]), weights, figures))
    (one, before, padded), (other, after, shared) = made
    np.testing.assert_allclose(one, other, atol=1e-5)
    assert shared.pop("update/model_tokens") < padded.pop("update/model_tokens")
    assert padded == pytest.approx(shared, rel=1e-4, abs=1e-5)
    # AdamW's first steps are the gradient's sign: where that is rounding they may differ.
    assert float((before - after).abs().mean()) < 1e-6


def test_adapters_and_checkpointing_learn_the_same(policy):
    rows = [sample(6, 3), sample(6, 5, -1.0), sample(9, 2), sample(1, 1)]
    made = []
    for is_shared in (False, True):
        own = Policy(policy.trainable_copy().model, policy.tokenizer, "cpu")
        own.adapt(LoraConfig(rank=2), "nowhere", 1)
        if is_shared:
            own.set_share_prefixes(True)
            own.checkpoint_activations()
        own.model.train()
        made.append(learned(own, rows, 10**6))
    assert_equal(*made)
    assert made[0][3] == 33
    assert made[1][3] == 11 + 5 + 1  # of the first two, then of one each


def test_batches_that_were_not_made_for_it_pass_one_by_one(policy):
    batch = to_batch([sample(5, 3), sample(5, 4)], 0)
    with torch.no_grad():
        assert torch.equal(sharing(policy).logprobs(batch)[0], policy.logprobs(batch)[0])
        shared = to_batch([sample(5, 3), sample(5, 4)], 0, share_prefixes=True)
        assert torch.equal(policy.logprobs(shared)[0], policy.logprobs(batch)[0])
    assert sharing(policy).frozen_copy().share_prefixes
    assert list(micro_batch_indices([sample(5, 3)] * 3, 8, share_prefixes=True)) == [[0, 1, 2]]


def test_models_that_cannot_share_are_refused(policy):
    def wrapped(model):
        return Policy(model, policy.tokenizer, "cpu")

    small_sizes = {"hidden_size": 16, "num_hidden_layers": 1, "vocab_size": 300}
    windowed = MistralConfig(
        **small_sizes, intermediate_size=16, num_attention_heads=2, sliding_window=8
    )
    falcon = FalconConfig(**small_sizes, num_attention_heads=2)
    eager = policy.trainable_copy()
    eager.model.set_attn_implementation("eager")
    adapted = wrapped(policy.trainable_copy().model)
    adapted.adapt(LoraConfig(rank=2, dropout=0.1), "nowhere", 1)
    for own, reason in (
        (eager, "its attention is 'eager', and only sdpa supports it"),
        (make_policy("gemma3_text"), "it has layers of sliding_attention"),
        (make_policy("qwen3_5_text"), "it has recurrent layers"),
        (wrapped(MistralForCausalLM(windowed)), "it has layers of sliding_attention"),
        (wrapped(MambaForCausalLM(MambaConfig(**small_sizes))), "it has recurrent layers"),
        (wrapped(FalconForCausalLM(falcon)), "its attention cannot be replaced"),
        (make_seeing("qwen2_5_vl"), "equal tokens may stand for different images"),
        (adapted, "its adapters have dropout"),
    ):
        with pytest.raises(ConfigError, match=rf"'shared' is not for this \w+: {reason}"):
            own.set_share_prefixes(True)
        assert not own.share_prefixes
        own.set_share_prefixes(False)
    with pytest.raises(ConfigError, match="'packed' is not for this mistral"):
        wrapped(MistralForCausalLM(windowed)).set_padding_free(True)  # nor can it be packed


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("policy.lora={rank=2,dropout=0.1}", r"policy\.lora\.dropout 0\.1"),
        ("policy.attention='flex_attention'", "its attention is 'flex_attention'"),
        ("policy.attention='flash_attention_2'", "its attention is 'flash_attention_2'"),
    ],
)
def test_settings_that_cannot_share_are_refused_before_the_start(field, reason):
    fields = ["warmstart.episodes=1", "optimizer.packing='shared'"]
    check(config.load("corridor-tiny", fields))
    with pytest.raises(ConfigError, match=reason):
        check(config.load("corridor-tiny", [*fields, field]))
    with pytest.raises(ConfigError, match="'tiny-vl'"):
        check(config.load("visual-sokoban-tiny", fields))


def test_a_run_that_shares_resumes_and_learns_what_one_that_does_not_learns(tmp_path):
    fields = ["run.steps=2", "checkpoint.every=1", "eval.every=0", "eval.tasks=1"]
    whole = run(small(tmp_path, "whole", *fields, "optimizer.packing='shared'"))
    resumed, apart = (second_step(whole, tmp_path / name, name == "so") for name in ("so", "apart"))
    weights = whole.policy.model.parameters(), resumed.policy.model.parameters()
    assert all(map(torch.equal, *weights))
    assert lines(resumed) == lines(whole)
    assert not apart.policy.share_prefixes
    one, other = (updates(trainer)[1] for trainer in (whole, apart))
    assert one.pop("update/model_tokens") < other.pop("update/model_tokens")
    assert one["update/grad_norm"] > 0
    assert one == pytest.approx(other, abs=1e-5)


def test_a_run_that_keeps_texts_and_shares_by_default_resumes_to_the_bit(tmp_path):
    fields = ["run.steps=2", "checkpoint.every=1", "eval.every=1", "eval.tasks=2"]
    mixed = ["policy.precision='mixed'", "agent.context='transcript'"]
    whole = run(small(tmp_path, "whole", *fields, *mixed))
    assert whole.policy.share_prefixes
    assert whole.generator.completer._kept is not None
    resumed = second_step(whole, tmp_path / "again", None)
    weights = whole.policy.model.parameters(), resumed.policy.model.parameters()
    assert all(map(torch.equal, *weights))
    assert lines(resumed) == lines(whole)


def second_step(whole, folder, shares):
    """The run, stopped after its first step and resumed."""
    shutil.copytree(whole.folder.path, folder, symlinks=True)
    shutil.rmtree(folder / "checkpoints" / "step-000002")
    kept = json.loads((folder / "config.json").read_text())
    kept["optimizer"]["packing"] = "shared" if shares else None
    (folder / "config.json").write_text(json.dumps(kept))
    trainer = setup.resume(folder)
    assert trainer.step == 1
    trainer.run()
    return trainer


def updates(trainer):
    told = [{k: v for k, v in one.items() if k.startswith("update/")} for one in lines(trainer)]
    return [one for one in told if one]


def test_a_cpu_in_mixed_precision_shares_them_by_default(policy, monkeypatch):
    for precision, packing, shared in (
        ("mixed", None, True),
        ("mixed", False, False),
        ("float32", None, False),
    ):
        own = Policy(policy.trainable_copy().model, policy.tokenizer, "cpu", precision=precision)
        own.set_padding_free(packing)
        own.set_share_prefixes(None)
        assert own.share_prefixes == shared
        own.processes = SimpleNamespace(size=2)
        own.set_share_prefixes(own.wanted_sharing)
        assert not own.share_prefixes
    monkeypatch.setattr("harness.model.forward.sharing_obstacle", lambda _: "recurrent layers")
    own = Policy(policy.trainable_copy().model, policy.tokenizer, "cpu", precision="mixed")
    own.set_padding_free(None)
    own.set_share_prefixes(None)
    assert not own.share_prefixes
