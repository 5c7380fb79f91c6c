"""A trained model's GGUF file has its weights under another file's header, or is refused."""

import numpy as np
import pytest
import torch

pytest.importorskip("gguf", reason="needs the package gguf")

import any_model
import gguf
import gguf_files
from gguf_files import MODELS, written

from harness.model.policy import Policy
from harness.model.weights.converted import packages
from harness.model.weights.converted.gguf_writer import Original
from harness.types.errors import ConfigError

OWN = {"general.name", "general.description", "tokenizer.chat_template"}
COUNTS = {"GGUF.kv_count", "GGUF.version", "GGUF.tensor_count"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))


def trained(tmp_path, file):
    """Return the policy of a file with other weights, and the folder where it is saved."""
    policy = Policy.load(str(file), "cpu")
    with torch.no_grad():
        for weight in policy.model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    policy.tokenizer.chat_template += "{# trained #}"
    policy.save(tmp_path / "trained")
    return policy, tmp_path / "trained"


def fields(file):
    return {key: one.contents() for key, one in gguf.GGUFReader(file).fields.items()}


@pytest.mark.parametrize("family", MODELS)
def test_the_weights_are_the_trained_ones_and_the_header_is_the_originals(tmp_path, family):
    file, _ = written(tmp_path, family, gguf.GGMLQuantizationType.Q8_0)
    policy, folder = trained(tmp_path, file)
    about = {"general.name": "mine", "general.description": "trained"}
    new = tmp_path / "new.gguf"
    Original(file).write_trained(folder, new, tokenizer=policy.tokenizer, about=about)
    again = Policy.load(str(new), "cpu")
    found, wanted = dict(again.named_weights()), dict(policy.named_weights())
    assert found.keys() == wanted.keys()
    for name, weight in wanted.items():  # Gemma's norms are rounded once, for they are stored + 1
        torch.testing.assert_close(found[name], weight, rtol=0, atol=1e-7 if "norm" in name else 0)
    before, now = fields(file), fields(new)
    assert {k for k in now if now[k] != before.get(k)} <= OWN | COUNTS
    assert before.keys() - now.keys() <= {"general.file_type", "general.quantization_version"}
    assert (now["general.name"], now["general.description"]) == ("mine", "trained")
    assert now["tokenizer.chat_template"] == policy.tokenizer.chat_template
    assert {one.tensor_type.name for one in gguf.GGUFReader(new).tensors} == {"F32"}


def test_matrices_in_bfloat16(tmp_path):
    file, _ = written(tmp_path)
    policy, folder = trained(tmp_path, file)
    new = tmp_path / "new.gguf"
    Original(file).write_trained(folder, new, tokenizer=policy.tokenizer, precision="bfloat16")
    kinds = {
        one.name: (one.tensor_type.name, len(one.shape)) for one in gguf.GGUFReader(new).tensors
    }
    assert set(kinds.values()) == {("BF16", 2), ("F32", 1)}
    found, wanted = dict(Policy.load(str(new), "cpu").named_weights()), policy.named_weights()
    for name, weight in wanted:
        rounded = weight.bfloat16().float() if weight.dim() > 1 else weight
        torch.testing.assert_close(found[name], rounded.detach(), rtol=0, atol=0)


def test_several_chat_templates_keep_their_names(tmp_path):
    file, _ = written(tmp_path)
    policy, folder = trained(tmp_path, file)
    policy.tokenizer.chat_template = {"default": "{{ messages }}", "tool_use": "{{ tools }}"}
    new = tmp_path / "new.gguf"
    Original(file).write_trained(folder, new, tokenizer=policy.tokenizer)
    found = fields(new)
    assert found["tokenizer.chat_template"] == "{{ messages }}"
    assert found["tokenizer.chat_template.tool_use"] == "{{ tools }}"


def test_an_original_of_another_model_is_refused(tmp_path):
    file, _ = written(tmp_path)
    policy, folder = trained(tmp_path, file)

    def refused(original, tokenizer=policy.tokenizer):
        with pytest.raises(ConfigError) as error:
            Original(original).write_trained(folder, tmp_path / "x", tokenizer=tokenizer)
        assert not (tmp_path / "x").exists()
        return str(error.value)

    narrow = any_model.model_of("llama", intermediate_size=48)
    (tmp_path / "narrow").mkdir()
    other = gguf_files.write(tmp_path / "narrow/llama.gguf", narrow, any_model.TOKENIZER)
    assert "blk.0.ffn_down.weight has the shape" in refused(other)
    extra = {"extra.weight": np.zeros(3, np.float32)}
    (tmp_path / "more").mkdir()
    assert "extra.weight has the shape (3,) in it, expected none" in refused(
        written(tmp_path / "more", tensors=extra)[0]
    )
    pieces, _ = written(tmp_path, "gemma2")
    assert "its token 0 is '<pad>', expected" in refused(pieces)


def test_what_cannot_be_an_original_is_refused_by_name(tmp_path, monkeypatch):
    file, _ = written(tmp_path, architecture="phi3")
    with pytest.raises(ConfigError, match="architecture 'phi3' cannot be written, expected llama,"):
        Original(file)
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(ConfigError, match=r"damaged.gguf is no GGUF file, or damaged"):
        Original(damaged)
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="run: pip install gguf"):
        Original(file)
