"""Muon on matrices, AdamW on the rest, as one optimizer."""

import pytest
import torch

from harness import config as configs
from harness.config import OptimizerConfig, consistency, replace
from harness.distributed.fsdp import load_optimizer_state, optimizer_state
from harness.preflight.checks import check_optimizer
from harness.training.learner import set_learning_rate
from harness.training.optimizer import make_optimizer
from harness.types.errors import ConfigError
from tests.harness.tiny_families import make_policy

MUON = OptimizerConfig(name="muon", learning_rate=1e-2, weight_decay=0.1, betas=(0.8, 0.9))
needs_muon = pytest.mark.skipif(
    not hasattr(torch.optim, "Muon"), reason="torch has Muon from 2.9 on"
)


def model():
    return make_policy("qwen2").model


def take_step(model, optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        weight.grad = torch.randn(weight.shape, generator=generator)
    optimizer.step()


def orthogonalised(gradient):
    """Five steps of the quintic iteration by Jordan et al., on the shorter side's Gram matrix."""
    wide = gradient if gradient.shape[0] <= gradient.shape[1] else gradient.T
    wide = wide / wide.norm()
    for _ in range(5):
        gram = wide @ wide.T
        wide = 3.4445 * wide + (-4.7750 * gram + 2.0315 * gram @ gram) @ wide
    return wide if gradient.shape[0] <= gradient.shape[1] else wide.T


def test_muon_and_offloaded_moments_are_refused_together():
    settings = ["optimizer.name='muon'", "policy.offload='optimizer'"]
    with pytest.raises(ConfigError, match="moves AdamW's moments, and optimizer.name is 'muon'"):
        consistency.check(configs.load("corridor-tiny", settings))


@needs_muon
def test_matrices_take_muons_steps_and_all_else_those_of_adamw():
    own, other = model(), model()
    expected = {name: weight.detach().double() for name, weight in own.named_parameters()}
    first = {name: weight.clone() for name, weight in expected.items()}
    momentum = dict.fromkeys(expected, 0.0)
    muon, adamw = make_optimizer(own, MUON), make_optimizer(other, replace(MUON, name="adamw"))
    for step in range(2):
        take_step(own, muon, step)
        take_step(other, adamw, step)
        for name, weight in own.named_parameters():
            if weight.ndim == 2:
                momentum[name] = 0.95 * momentum[name] + 0.05 * weight.grad.double()
                update = orthogonalised(0.05 * weight.grad + 0.95 * momentum[name])
                update *= 0.2 * max(weight.shape) ** 0.5
                expected[name] = expected[name] * (1 - 1e-2 * 0.1) - 1e-2 * update
    by_adamw, kinds = dict(other.named_parameters()), set()
    for name, weight in own.named_parameters():
        hidden = weight.ndim == 2 and "embed" not in name and "lm_head" not in name
        kinds.add(hidden)
        if hidden:  # torch's iteration is in bfloat16
            change = (expected[name] - first[name]).norm()
            assert (weight - expected[name]).norm() < 0.02 * change, name
        else:
            assert torch.equal(weight, by_adamw[name]), name
    assert kinds == {True, False}


@needs_muon
def test_a_state_goes_on_exactly_and_one_learning_rate_is_for_both():
    whole, stopped = model(), model()
    first, second = make_optimizer(whole, MUON), make_optimizer(stopped, MUON)
    for step in range(3):
        take_step(whole, first, step)
        take_step(stopped, second, step)
    kept = optimizer_state(second, stopped.named_parameters())
    resumed = make_optimizer(stopped, replace(MUON, learning_rate=1.0))
    load_optimizer_state(resumed, stopped.named_parameters(), kept)
    for optimizer in (first, resumed):
        set_learning_rate(optimizer, 5e-3)
    before = [weight.detach().clone() for weight in whole.parameters()]
    for step in range(3, 5):
        take_step(whole, first, step)
        take_step(stopped, resumed, step)
    assert all(map(torch.equal, whole.parameters(), stopped.parameters()))
    assert not any(map(torch.equal, whole.parameters(), before))
    for optimizer in (first, resumed):
        set_learning_rate(optimizer, 0.0)
    before = [weight.detach().clone() for weight in whole.parameters()]
    take_step(whole, first, 6)
    assert all(map(torch.equal, whole.parameters(), before))
    with pytest.raises(RuntimeError, match="another model"):
        load_optimizer_state(resumed, [("a", p) for p in stopped.parameters()], kept)


@needs_muon
def test_a_model_of_matrices_alone_needs_no_adamw():
    own = model()
    for name, weight in own.named_parameters():
        weight.requires_grad_("q_proj.weight" in name)
    optimizer = make_optimizer(own, MUON)
    assert len(optimizer.param_groups) == 1
    take_step(own, optimizer, 0)


def test_muon_is_refused_where_it_cannot_be(monkeypatch):
    with pytest.raises(ConfigError, match="train with one process"):
        check_optimizer(MUON, sharded=True)
    monkeypatch.delattr(torch.optim, "Muon", raising=False)
    with pytest.raises(ConfigError, match="needs torch 2.9 or later"):
        make_optimizer(model(), MUON)
    check_optimizer(OptimizerConfig(), sharded=True)
