"""GGUF files become folders whose logits are the file's; what would be read wrongly is refused."""

import json

import numpy as np
import pytest
import torch

pytest.importorskip("gguf", reason="needs the package gguf")

import any_model
import gguf
import gguf_files
from gguf_files import MODELS, written

from harness.evaluation import model_source
from harness.model.policy import Policy
from harness.model.weights import converted
from harness.model.weights.converted import gguf_file, packages
from harness.types.errors import ConfigError

KINDS = gguf.GGMLQuantizationType


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    return tmp_path / "home" / "models"


@torch.no_grad()
def round_as(model, kind):
    """Round matrices as a file of this kind stores them; Gemma's norms stay."""
    for weight in model.parameters():
        if weight.dim() > 1:
            stored = gguf.quantize(weight.numpy(), kind)
            weight.copy_(torch.from_numpy(gguf.dequantize(stored, kind).copy()))


@pytest.mark.parametrize("kind", [KINDS.F32, KINDS.F16, KINDS.BF16, KINDS.Q8_0])
@pytest.mark.parametrize("family", MODELS)
def test_logits_are_those_of_the_weights_in_the_file(tmp_path, family, kind):
    file, model = written(tmp_path, family, kind)
    round_as(model, kind)
    policy = Policy.load(str(file), "cpu")
    ids = torch.arange(7, 60)[None]
    with torch.no_grad():
        torch.testing.assert_close(policy.model(ids).logits, model(ids).logits, rtol=0, atol=1e-5)
    assert policy.chat_tokenizer.decode(policy.chat_tokenizer.encode("go open")) == "go open"


def test_tokens_stops_and_chats_are_those_of_the_file(tmp_path):
    file, _ = written(tmp_path)
    policy, own = Policy.load(str(file), "cpu"), any_model.TOKENIZER
    text = "go north, take 12 keys <|im_start|>"
    assert policy.chat_tokenizer.encode(text) == tuple(own.encode(text))
    assert policy.tokenizer.chat_template == own.chat_template
    assert own.eos_token_id in policy.chat_tokenizer.stop_ids


def test_a_file_is_converted_once_until_it_changes(tmp_path, monkeypatch, cache):
    file, _ = written(tmp_path)
    first = converted.folder_of(str(file))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gguf_file, "convert", None)  # would be no function
    converted.names._folder.cache_clear()
    assert converted.folder_of("llama.gguf") == first
    assert [folder.name for folder in cache.iterdir()] == [first.rpartition("/")[2]]
    monkeypatch.undo()
    monkeypatch.setenv("AGENTGYMS_DATA", str(cache.parent))
    written(tmp_path, "llama", KINDS.F16)
    assert converted.folder_of(str(file)) != first


REFUSED = {
    "architecture 'rwkv6'|architecture rwkv6": {"architecture": "rwkv6"},
    "it has no tokenizer": {"tokenizer": None},
    "positions are scaled .rope.scaling.type = 'yarn'": {"llama__rope__scaling__type": "yarn"},
    "positions are scaled .rope_freqs": {"tensors": {"rope_freqs.weight": np.ones(8, np.float32)}},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_transformers_cannot_read_is_refused_by_name(tmp_path, reason, cache):
    file, _ = written(tmp_path, **REFUSED[reason])
    with pytest.raises(ConfigError, match=f"policy.model '.*llama.gguf' cannot be .*{reason}"):
        Policy.load(str(file), "cpu")
    assert not list(cache.glob("llama-*"))


def test_a_quantisation_without_numbers_is_refused_by_name(tmp_path, monkeypatch):
    file, _ = written(tmp_path, kind=KINDS.Q8_0)
    known = gguf.dequantize

    def old(data, kind):
        if kind == KINDS.Q8_0:
            raise NotImplementedError
        return known(data, kind)

    monkeypatch.setattr(gguf, "dequantize", old)
    with pytest.raises(ConfigError, match=r"[.]weight is quantised as Q8_0, which the package"):
        converted.folder_of(str(file))


def test_what_a_file_says_of_its_training_may_be_anything(tmp_path):
    said = json.dumps({"step": 3, "config": {"policy": {"model": "x"}}, "provenance": {}})
    for name, text in (("whole", said), ("numbers", [1, 2]), ("damaged", "{")):
        (tmp_path / name).mkdir()
        written(tmp_path / name, agentgyms__training_run=text)
    assert model_source.find(str(tmp_path / "whole/llama.gguf")).step == 3
    assert model_source.find(str(tmp_path / "numbers/llama.gguf")).trained is None
    with pytest.raises(ConfigError, match=r"training_run\.json"):
        model_source.find(str(tmp_path / "damaged/llama.gguf"))


@pytest.mark.parametrize("left", [0, 3, 200, 20_000])
def test_a_damaged_file_is_refused(tmp_path, left):
    file, _ = written(tmp_path)
    file.write_bytes(file.read_bytes()[:left])
    with pytest.raises(ConfigError, match=r"llama.gguf' cannot be converted: "):
        converted.folder_of(str(file))


def test_a_weight_that_is_missing_is_not_made_up(tmp_path, monkeypatch):
    monkeypatch.setattr(gguf_files, "LEFT_OUT", "blk.1.ffn_up.weight")
    file, _ = written(tmp_path)
    with pytest.raises(ConfigError, match="it has no model.layers.1.mlp.up_proj.weight"):
        converted.folder_of(str(file))


def test_a_missing_file_and_a_missing_package_are_named(tmp_path, monkeypatch):
    file, _ = written(tmp_path)
    with pytest.raises(ConfigError, match=r"no GGUF file '.*lama.gguf'; .* has llama.gguf"):
        Policy.load(str(tmp_path / "lama.gguf"), "cpu")
    monkeypatch.setattr(packages, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="run: pip install gguf"):
        Policy.load(str(file), "cpu")
