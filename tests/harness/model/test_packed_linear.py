"""Linear layers with packed weights: the same products, also after the weights change."""

import copy

import pytest
import torch

from harness.model.weights import packed_linear
from harness.model.weights.packed_linear import PackedLinear, pack_linears
from harness.model.weights.usual_precision import has_bfloat16

capable = pytest.mark.skipif(not has_bfloat16(), reason="this CPU does not compute in bfloat16")


@pytest.fixture
def model():
    torch.manual_seed(3)
    layers = torch.nn.Sequential(torch.nn.Linear(48, 80), torch.nn.Linear(80, 24, bias=False))
    return layers.to(torch.bfloat16)


@pytest.mark.parametrize("rows", [1, 5, 70])
@capable
def test_products_are_those_of_plain_layers(model, rows):
    x = torch.randn(2, rows, 48).to(torch.bfloat16)
    plain = copy.deepcopy(model)
    pack_linears(model)
    assert {type(layer) for layer in model} == {PackedLinear}
    with torch.inference_mode():
        torch.testing.assert_close(model(x), plain(x), atol=0.02, rtol=0.02)
    with torch.no_grad():
        for layer, other in zip(model, plain, strict=True):
            other.weight.copy_(layer.weight.copy_(torch.randn_like(layer.weight)))
        torch.testing.assert_close(model(x), plain(x), atol=0.2, rtol=0.02)
    with torch.no_grad():
        assert torch.equal(copy.deepcopy(model)(x), model(x))


@capable
def test_gradients_and_other_types_take_the_plain_product(model, monkeypatch):
    pack_linears(model)
    monkeypatch.setattr(PackedLinear, "_packed", property(lambda _: 1 / 0), raising=False)
    x = torch.randn(3, 48).to(torch.bfloat16)
    model(x).float().sum().backward()
    assert all(layer.weight.grad is not None for layer in model)


def test_other_layers_and_other_cpus_stay_as_they_are(model, monkeypatch):
    pack_linears(exact := torch.nn.Sequential(torch.nn.Linear(4, 4)))
    assert type(exact[0]) is torch.nn.Linear
    monkeypatch.setattr(packed_linear, "has_bfloat16", lambda: False)
    pack_linears(model)
    assert type(model[0]) is torch.nn.Linear
