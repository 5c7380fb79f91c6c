"""Every architecture that transformers builds tiny agrees on each path, or is refused by name."""

import sys
from pathlib import Path

import pytest
import transformers

sys.path.append(str(Path(__file__).parents[3] / "benchmarks/models"))
import matrix
import tiny_models

from harness.model.policy import Policy

PAGE = matrix.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_models.make_tokenizer()


@pytest.mark.slow
def test_no_architecture_differs_without_an_error_and_the_page_tells_what_each_does():
    found, left_out = matrix.survey_all(tiny_models.kinds())
    assert matrix.silent(found) == {}
    assert found.keys() | left_out.keys() == set(tiny_models.kinds())
    assert len(left_out) < 0.1 * len(found)
    assert sum(one["padded"].what == matrix.AGREES for one in found.values()) > 0.9 * len(found)
    if f"transformers {transformers.__version__} " in PAGE:
        assert matrix.page(found, left_out) == PAGE, "python benchmarks/models/matrix.py --write"


def test_an_architecture_without_settings_is_tried_and_one_that_cannot_be_made_says_why(tokenizer):
    assert not {"llama", "qwen3", "gpt2"} & tiny_models.SETTINGS["own"].keys()
    found, left_out = matrix.survey_all(["llama", "musicgen"])
    assert {path: one.what for path, one in found["llama"].items()} == dict.fromkeys(
        matrix.PATHS, matrix.AGREES
    )
    assert left_out.keys() == {"musicgen"}
    assert "MusicgenConfig" in left_out["musicgen"]


def test_scales_biases_and_norms_of_the_tiny_models_are_not_neutral(tokenizer):
    model = tiny_models.make("granite", tokenizer)
    assert (model.config.logits_scaling, model.config.residual_multiplier) == (4.0, 0.7)
    norms = [w for name, w in model.named_parameters() if name.endswith("norm.weight")]
    assert norms
    assert all(norm.std() > 0.01 for norm in norms)


def test_a_difference_is_found_on_the_path_that_has_it(tokenizer, monkeypatch):
    """The judge is independent: it asks transformers' own class alone."""
    scored = matrix.score_tokens

    def off(policy, rows):
        one = scored(policy, rows)
        if policy.padding_free:
            one[1].logprob[:] += 0.01
        return one

    monkeypatch.setattr(matrix, "score_tokens", off)
    found = matrix.survey("llama", tokenizer)
    assert [found[path].what for path in matrix.PATHS] == ["agrees", "differs", "agrees", "agrees"]
    assert matrix.silent({"llama": found}) == {("llama", "packed"): "differs: 1.0e-02 nats"}


def test_errors_without_a_name_count_as_silent(tokenizer, monkeypatch):
    def fails(*_, **__):
        raise IndexError("list index out of range")

    monkeypatch.setattr(Policy, "load", fails)
    found = {"llama": matrix.survey("llama", tokenizer)}
    assert set(matrix.silent(found).values()) == {"fails: IndexError: list index out of range"}
    unnamed = {"llama": {"padded": matrix.Found(matrix.REFUSED, "it cannot be used")}}
    assert matrix.silent(unnamed)
    unnamed["llama"]["padded"] = matrix.Found(matrix.REFUSED, "the model of type llama cannot")
    assert not matrix.silent(unnamed)
    assert "| `llama` | **fails** |" in matrix.page(found, {})
