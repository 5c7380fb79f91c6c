"""The precision where no setting names one: by the device's capability and the model's size."""

import pytest
import torch

from harness.model.forward import Network
from harness.model.weights import usual_precision as precisions

LARGE = precisions.SMALLEST_MIXED


@pytest.mark.parametrize(
    ("capability", "usual"),
    [("amx_bf16", "mixed"), ("avx512_bf16", "mixed"), ("avx512_f", "float32")],
)
def test_a_cpu_with_bfloat16_computes_large_models_in_it(monkeypatch, capability, usual):
    capable = {capability: True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capable, raising=False)
    assert precisions.usual_precision("cpu", LARGE) == usual
    assert precisions.usual_precision("cpu", LARGE - 1) == "float32"
    assert precisions.usual_precision("cpu", LARGE, processes=2) == "float32"
    assert precisions.usual_precision("cuda", 1) == "mixed"
    assert precisions.usual_precision("meta", LARGE) == "float32"


def test_an_older_torch_is_asked_for_avx512(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    for found in (True, False):
        monkeypatch.setattr(
            torch.cpu, "_is_avx512_bf16_supported", lambda f=found: f, raising=False
        )
        assert precisions.has_bfloat16() is found


def test_a_model_takes_the_usual_precision_and_a_named_one(monkeypatch):
    monkeypatch.setattr(precisions, "has_bfloat16", lambda: True)
    large = torch.nn.Linear(1, LARGE, bias=False)
    for model, named, found in (
        (large, None, "mixed"),
        (large, "float32", "float32"),
        (torch.nn.Linear(1, 1), None, "float32"),
    ):
        network = Network(model, 0, "cpu", named)
        assert network.precision == found
        assert {weight.dtype for weight in network.model.parameters()} == {torch.float32}
