"""Gradients of embedding and output layer, in place: the same ones, without a copy of a weight."""

import copy

import numpy as np
import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from harness.config import OptimizerConfig
from harness.model.learning_mode import (
    InPlaceEmbedding,
    InPlaceLinear,
    add_in_place,
    make_gradients,
)
from harness.model.packing import Sample
from harness.model.policy import Policy
from harness.model.vocabulary.output_layer import token_scores
from harness.preflight.activations import Tracker, count
from harness.preflight.model_shapes import measure
from harness.training.learner import Learner

SIZE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
}


def model_of(*, tied, vocabulary=97):
    torch.manual_seed(2)
    return Qwen2ForCausalLM(Qwen2Config(**SIZE, vocab_size=vocabulary, tie_word_embeddings=tied))


def gradients(model, most_logits):
    """The gradients of two micro-batches, padding tokens among their inputs."""
    rng = np.random.default_rng(1)
    for _ in range(2):
        tokens = torch.from_numpy(rng.integers(0, 97, (2, 9)))
        tokens[0, 3] = 0
        hidden = model.base_model(input_ids=tokens).last_hidden_state.flatten(0, 1)
        chosen = torch.from_numpy(rng.integers(0, 97, len(hidden)))
        scores = token_scores(
            model.lm_head, hidden, chosen, 0.7, entropy_gradient=True, most_logits=most_logits
        )
        (scores[0].sum() + 0.3 * scores[1].sum()).backward()
    return {name: weight.grad for name, weight in model.named_parameters()}


@pytest.mark.parametrize("most_logits", [1 << 20, 97 * 5])
@pytest.mark.parametrize("tied", [False, True])
def test_gradients_in_place_are_those_of_autograd(tied, most_logits):
    model = model_of(tied=tied)
    own = copy.deepcopy(model)
    add_in_place(own)
    exact, found = gradients(model, most_logits), gradients(own, most_logits)
    assert type(own.lm_head) is InPlaceLinear
    assert type(copy.deepcopy(own).get_input_embeddings()) is InPlaceEmbedding
    for name, gradient in exact.items():
        assert torch.allclose(found[name], gradient, atol=1e-5, rtol=1e-5), name
    if not tied:
        assert not found["model.embed_tokens.weight"][0].any(), "of the padding token"


def test_a_bias_and_frozen_weights_are_left_to_autograd():
    layer, x = torch.nn.Linear(4, 6), torch.randn(2, 3, 4, requires_grad=True)
    twin = copy.deepcopy(layer)
    twin.__class__ = InPlaceLinear
    for one in (layer, twin):
        one(x).square().sum().backward()
    assert torch.allclose(layer.weight.grad, twin.weight.grad, atol=1e-6)
    assert torch.allclose(layer.bias.grad, twin.bias.grad, atol=1e-6)
    frozen = model_of(tied=False).requires_grad_(False)
    add_in_place(frozen)
    assert type(frozen.lm_head) is torch.nn.Linear
    make_gradients(frozen)
    assert all(weight.grad is None for weight in frozen.parameters())


def test_an_update_takes_little_more_than_the_least_memory(policy):
    """Weights, gradients, moments, the layers' inputs and one layer; no second large gradient."""
    model = model_of(tied=True, vocabulary=40_000)
    own = Policy(model, policy.tokenizer, "cpu")
    own.checkpoint_activations()
    shape, tokens = measure(model.config), 300
    config = OptimizerConfig(mini_batches=1, micro_batch_tokens=tokens)
    learner = Learner(own, None, config, "clipped", {}, 1.0)
    rng = np.random.default_rng(3)
    drawn = rng.integers(1, 40_000, (2, tokens)).tolist()
    rows = [Sample(tuple(x[:-4]), tuple(x[-4:]), (-10.0,) * 4, 1.0) for x in drawn]
    learner.update(rows, step=0, seed=0)
    with Tracker() as tracker:
        for parameter in model.parameters():
            tracker.add(parameter)
            for name in ("exp_avg", "exp_avg_sq"):
                tracker.add(learner.optimizer.state[parameter][name])
        learner.update(rows, step=1, seed=1)
    layer = max(count(shape.text, 4, 4, again=True).backward)
    least = 16 * shape.parameters + tokens * (4 * shape.layers * shape.hidden + layer)
    assert least < tracker.most + tokens * 4 * shape.hidden
    assert tracker.most < 1.25 * least
