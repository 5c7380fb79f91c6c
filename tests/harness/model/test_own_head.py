"""Logits by the model's own way from hidden states: scales, caps, transforms, and gradients."""

import copy

import numpy as np
import pytest
import torch

from harness.model.learning_mode import InPlaceLinear, add_in_place
from harness.model.logprobs import score_tokens
from harness.model.packed_rows.attention import language_model
from harness.model.packing import Sample, to_batch
from harness.model.vocabulary import output_layer
from harness.model.vocabulary.output_layer import token_scores
from harness.model.vocabulary.own_head import OwnHead, is_plain
from harness.types.errors import ConfigError
from tests.harness.any_model import TOKENIZER, model_of, policy_of

OWN = {
    "bert": {"is_decoder": True},
    "cohere": {"logit_scale": 0.0625},
    "cohere2": {"logit_scale": 0.0625},
    "electra": {"is_decoder": True},
    "gemma2": {"final_logit_softcapping": 5.0},
    "gemma3_text": {"final_logit_softcapping": 5.0},
    "granite": {"logits_scaling": 8.0},
    "granitemoe": {"logits_scaling": 8.0},
    "falcon_h1": {"lm_head_multiplier": 0.3, "mamba_d_ssm": 64, "mamba_n_heads": 4},
    "nanochat": {},
    "vaultgemma": {"final_logit_softcapping": 5.0},
}
PLAIN = ("falcon", "gpt2", "llama", "llama4_text", "opt", "qwen3", "starcoder2")
SHORT = {"falcon_h1": {"mamba_d_head": 16}}


def rows_of(count=3, length=9):
    ids = np.random.default_rng(3).integers(4, len(TOKENIZER), (count, length)).tolist()
    return [Sample(tuple(row[:2]), tuple(row[2:]), (0.0,) * (length - 2), 1.0) for row in ids]


def gradients_of(model):
    return {name: w.grad.clone() for name, w in model.named_parameters() if w.grad is not None}


@pytest.mark.parametrize("kind", [*OWN, *PLAIN])
def test_hidden_states_give_the_models_own_logits(kind):
    model = model_of(kind, **OWN.get(kind, {}), **SHORT.get(kind, {}))
    tokens = torch.tensor([rows_of()[0].prompt_ids + rows_of()[0].response_ids])
    with torch.no_grad():
        hidden = language_model(model)(input_ids=tokens, use_cache=False).last_hidden_state[0]
        wanted = model(input_ids=tokens, use_cache=False).logits[0]
        assert torch.equal(OwnHead(model)(hidden), wanted)
    assert is_plain(model, hidden.shape[-1]) == (kind in PLAIN)
    assert set(model._modules) == set(
        model_of(kind, **OWN.get(kind, {}), **SHORT.get(kind, {}))._modules
    )


@pytest.mark.parametrize("kind", ["cohere", "gemma2", "granite"])
def test_training_scores_tokens_as_the_model_does(kind):
    policy, rows = policy_of(kind, **OWN[kind]), rows_of()
    for row, found in zip(rows, score_tokens(policy, rows, temperature=0.7), strict=True):
        tokens = torch.tensor([row.prompt_ids + row.response_ids])
        with torch.no_grad():
            logits = policy.model(input_ids=tokens).logits[0, 1:-1] / 0.7
        distribution = torch.log_softmax(logits, -1)
        wanted = distribution.gather(-1, tokens[0, 2:, None])[:, 0]
        assert found.logprob == pytest.approx(wanted.numpy(), abs=1e-5)
        entropy = -(distribution.exp() * distribution).sum(-1)
        assert found.entropy == pytest.approx(entropy.numpy(), abs=1e-4)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("kind", ["cohere", "gemma2", "bert"])
def test_the_gradient_of_chunks_is_that_of_full_logits(kind, in_place, monkeypatch):
    """The largest chunk has four tokens, so memory does not grow with the tokens."""
    policy, rows = policy_of(kind, **OWN[kind]), rows_of()
    exact = copy.deepcopy(policy.model)
    if in_place:
        add_in_place(policy.model)
        assert isinstance(policy.model.get_output_embeddings(), InPlaceLinear)
    seen = []
    head = policy.model.get_output_embeddings()
    policy.output_head(policy.model.config.hidden_size)  # tried before the count begins
    head.register_forward_pre_hook(lambda _, given: seen.append(given[0].numel()))
    full, size = len(TOKENIZER), 4
    scores = lambda *a, **k: token_scores(*a, **k, most_logits=size * full)
    monkeypatch.setattr("harness.model.forward.token_scores", scores)
    batch = to_batch(rows, policy.pad_id)
    logprob, entropy = policy.logprobs(batch, entropy_gradient=True)
    (logprob.sum() + 0.3 * entropy.sum()).backward()
    assert max(seen) == size * head.weight.shape[1]
    logits = exact(input_ids=batch.tokens, use_cache=False).logits[:, 1:-1]
    distribution = torch.log_softmax(logits, -1)
    picked = distribution.gather(-1, batch.tokens[:, 2:, None])
    (picked.sum() - 0.3 * (distribution.exp() * distribution).sum()).backward()
    wanted, found = gradients_of(exact), gradients_of(policy.model)
    for name, gradient in wanted.items():
        assert torch.allclose(found[name], gradient, atol=1e-3, rtol=1e-3), name


def test_a_plain_head_keeps_the_fused_path():
    policy = policy_of("llama")
    assert policy.output_head(64) is policy.model.get_output_embeddings()
    assert output_layer.MOST_LOGITS == 1 << 26


def test_a_copy_with_rounded_weights_keeps_the_scale():
    policy = policy_of("granite", "mixed", logits_scaling=8.0)
    twin, rows = policy.generation_copy(), rows_of()
    assert isinstance(twin.output_head(64), OwnHead)
    found, wanted = (
        score_tokens(twin, rows),
        score_tokens(policy_of("granite", logits_scaling=8.0), rows),
    )
    for own, exact in zip(found, wanted, strict=True):
        assert own.logprob == pytest.approx(exact.logprob, abs=0.2)


def test_a_head_in_training_is_tried_without_dropout_and_without_random_numbers():
    model = model_of("bert", is_decoder=True).train()
    modes, state = [m.training for m in model.modules()], torch.get_rng_state()
    assert not is_plain(model, 64)
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)


def test_a_model_without_an_output_layer_is_refused_by_name():
    model = model_of("llama")
    model.get_output_embeddings = lambda: None
    with pytest.raises(ConfigError, match="type llama .* has no output layer"):
        is_plain(model, 64)
