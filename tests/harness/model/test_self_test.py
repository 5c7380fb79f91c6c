"""Each path is compared with the model alone: mistakes on purpose are found, right models pass."""

import random

import numpy as np
import pytest
import torch

from harness.inference import HFCompleter
from harness.inference.completers import decoding_check
from harness.inference.completers.decoding import DecodeBatch
from harness.model import self_test
from harness.model.forward import Network, small_networks
from harness.model.packed_rows import attention, prefix_tree
from harness.model.policy import Policy
from harness.types.errors import ConfigError
from tests.harness import any_model
from tests.harness.any_model import model_of, policy_of


def load(tmp_path, kind, device="cpu", **changes):
    model_of(kind, **changes).save_pretrained(tmp_path)
    any_model.TOKENIZER.save_pretrained(tmp_path)
    return Policy.load(str(tmp_path), device)


@pytest.mark.parametrize("kind", ["llama", "gemma2", "cohere", "gpt2", "mistral", "qwen3"])
def test_right_models_agree_by_all_paths(kind):
    policy = policy_of(kind, sliding_window=8) if kind == "mistral" else policy_of(kind)
    found = self_test.figures(policy)
    assert "padded batch" in found
    assert max(found.values()) < 1e-4
    HFCompleter(policy)
    with self_test.trial(policy, "decoding"):
        assert decoding_check.difference(policy) < 1e-4


@pytest.mark.parametrize("precision", ["mixed", "bfloat16"])
def test_right_models_agree_in_half_precision(precision):
    policy = policy_of("cohere", precision)
    policy.test()
    policy.set_padding_free(True)
    HFCompleter(policy)
    HFCompleter(policy.generation_copy())


# A scale, a mask and a position that are wrong on purpose.


def test_a_dropped_scale_is_found(monkeypatch, tmp_path):
    assert load(tmp_path, "granite", logits_scaling=8.0)
    plain = lambda self, width: self.model.get_output_embeddings()
    monkeypatch.setattr(Network, "output_head", plain)
    with pytest.raises(ConfigError, match=r"type granite gives other .* padded batch .* nats"):
        Policy.load(str(tmp_path), "cpu")


def test_a_dropped_scale_is_found_although_weights_are_rounded(monkeypatch):
    """The figure is within the tolerance of bfloat16, but not that of the miniature's float32."""
    policy = policy_of("granite", "bfloat16", logits_scaling=1.05, initializer_range=0.02)
    policy.test()
    plain = lambda self, width: self.model.get_output_embeddings()
    monkeypatch.setattr(Network, "output_head", plain)
    self_test.check(policy)
    with pytest.raises(ConfigError, match="in float32"):
        policy.test()


def test_a_dropped_padding_mask_is_found(monkeypatch):
    usual = DecodeBatch._forward

    def forward(self, position, **tokens):
        self._mask = torch.ones_like(self._mask)
        return usual(self, position, **tokens)

    monkeypatch.setattr(DecodeBatch, "_forward", forward)
    with pytest.raises(ConfigError, match=r"type qwen3 gives other .* padding on the left"):
        HFCompleter(policy_of("qwen3"))


@pytest.mark.parametrize("kind", ["gpt2", "qwen3"])
def test_shifted_positions_of_new_tokens_are_found(kind, monkeypatch):
    usual = DecodeBatch._forward

    def forward(self, position, **tokens):
        return usual(self, position + (position.shape[-1] == 1), **tokens)

    monkeypatch.setattr(DecodeBatch, "_forward", forward)
    with pytest.raises(ConfigError, match="padding on the left"):
        HFCompleter(policy_of(kind))


def test_rows_that_join_at_the_wrong_side_are_found(monkeypatch):
    from harness.inference.completers import decoding

    def stack(mine, added, left, added_left):
        parts = (mine, 0, 0, 0, left), (added, 0, 0, 0, added_left)
        return torch.cat([torch.nn.functional.pad(one, own) for one, *own in parts])

    monkeypatch.setattr(decoding, "_stack", stack)
    with pytest.raises(ConfigError, match="padding on the left"):
        HFCompleter(policy_of("llama"))


def test_dropped_boundaries_of_a_row_are_found(monkeypatch):
    usual, policy = attention._boundaries, policy_of("llama")
    dropped = lambda model, sizes, *others: usual(model, [sum(sizes)], *others)
    monkeypatch.setattr(attention, "_boundaries", dropped)
    with pytest.raises(ConfigError, match=r"packed row .* set optimizer.packing to 'padded'"):
        policy.set_padding_free(True)
    assert not policy.padding_free
    assert policy.model.config._attn_implementation == "sdpa"


def test_positions_that_go_on_through_a_row_are_found(monkeypatch):
    """Learned positions tell; rotations depend on distances alone."""
    usual = attention.packed_features

    def features(model, given, lengths, where, *others):
        position = torch.arange(where.numel()).view(where.shape)
        return usual(model, given | {"position_ids": position}, lengths, where, *others)

    monkeypatch.setattr("harness.model.forward.packed_features", features)
    with pytest.raises(ConfigError, match="packed row"):
        policy_of("gpt2").set_padding_free(True)


def test_wrong_paths_of_shared_prefixes_are_found(monkeypatch):
    monkeypatch.setattr(prefix_tree, "common_prefix", lambda one, other: min(2, len(one)))
    with pytest.raises(ConfigError, match=r"shared prefixes .* set optimizer.packing to 'padded'"):
        policy_of("llama").set_share_prefixes(True)


# Models that a path does not fit.


@pytest.mark.parametrize("kind", ["stablelm", "nemotron", "falcon"])
def test_a_row_whose_boundaries_the_layers_do_not_pass_on_is_refused(kind, monkeypatch):
    policy = policy_of(kind)
    policy.test()
    with pytest.raises(ConfigError, match=f"type {kind} .* packed row .* nats"):
        policy.set_padding_free(True)
    monkeypatch.setattr("harness.model.forward.is_fast", lambda *_: True)
    policy.set_padding_free(None)
    assert not policy.padding_free
    assert policy.wanted_packing is None
    assert policy.model.config._attn_implementation == "sdpa"
    policy.test()


def test_a_model_that_sees_later_tokens_is_refused_when_it_is_loaded(tmp_path):
    with pytest.raises(ConfigError, match="type bert gives other .* padded batch"):
        load(tmp_path, "bert")
    with pytest.raises(ConfigError, match="type bert gives other .* padded batch"):
        Policy.load(str(tmp_path), "meta")
    assert Policy.load(str(tmp_path), "cpu", tested=False)


@pytest.mark.parametrize("kind", ["mamba", "openai-gpt"])
def test_a_model_that_cannot_decode_left_padded_rows_is_refused_by_name(kind):
    policy = policy_of(kind, **{"state_size": 8} if kind == "mamba" else {})
    with pytest.raises(ConfigError, match=f"type {kind} cannot be used here: its cached decoding"):
        HFCompleter(policy)


def test_an_architecture_that_fails_is_refused_by_name(monkeypatch):
    def forward(*args, **kwargs):
        raise AttributeError("no such thing")

    policy = policy_of("llama")
    monkeypatch.setattr(policy.model.model, "forward", forward)
    with pytest.raises(ConfigError, match="type llama cannot be .* AttributeError: no such thing"):
        policy.test()


def test_numbers_that_are_none_are_infinitely_far():
    policy = policy_of("llama")
    policy.model.model.norm.weight.data.fill_(float("nan"))
    with pytest.raises(ConfigError, match="differ by inf nats"):
        policy.test()


def test_flash_attention_is_compared_in_half_precision_and_as_a_miniature(monkeypatch):
    """It cannot compute in float32; here another attention stands for it."""
    policy, seen, compared = policy_of("llama", "mixed"), [], []
    policy.model.register_forward_pre_hook(lambda *_: seen.append(torch.is_autocast_enabled("cpu")))
    with self_test.trial(policy, "alone"):
        self_test.wanted_logprobs(policy)
    assert not any(seen)
    seen.clear()
    monkeypatch.setattr(policy.model.config, "_attn_implementation_internal", "flash_attention_2")
    assert not self_test.is_exact(policy)
    monkeypatch.setattr(policy.model.config, "_attn_implementation_internal", "sdpa")
    usual = self_test.check
    monkeypatch.setattr(
        self_test, "check", lambda one, **more: compared.append(one) or usual(one, **more)
    )
    for name in ("harness.model.self_test.is_exact", "harness.model.self_test.paths.is_exact"):
        monkeypatch.setattr(name, lambda one: one.precision == "float32")
    policy.test()
    assert seen
    assert all(seen)
    assert [one.precision for one in compared] == ["float32", "mixed"]


def expert_model(precision):
    """A mixture of many experts whose weights are so large that rounding moves its routers."""
    experts = {"num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 32}
    layers = {"num_hidden_layers": 8, "initializer_range": 0.5, "head_dim": 16}
    return policy_of("qwen3_moe", precision, **experts, **layers)


@pytest.mark.parametrize("precision", ["mixed", "bfloat16"])
def test_routers_that_round_to_other_experts_are_no_mistake(precision):
    policy = expert_model(precision)
    with self_test.trial(policy, "padded batch"):
        found = self_test.paths._difference(policy, self_test.wanted_logprobs(policy))
    assert precision == "bfloat16" or found > self_test.TOLERANCE[precision], "rounding is shown"
    policy.test()
    HFCompleter(policy)


def test_a_transform_before_the_output_layer_is_rounded_with_the_model():
    """A decoder like BERT transforms the last hidden states; its output layer stays in float32."""
    policy = policy_of("bert", "mixed", is_decoder=True)
    policy.round_for_generation()
    policy.test()


def test_positions_that_depend_on_the_longest_row_are_out():
    """`longrope` takes other factors for a whole batch once one row is long."""
    rope = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    lengths = {"max_position_embeddings": 128, "original_max_position_embeddings": 32}
    policy = policy_of("phi3", rope_parameters=rope | {"rope_theta": 10000.0}, **lengths)
    assert policy.max_length == 32
    assert policy_of("llama").max_length > 32


# What the comparison leaves as it was.


@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_what_float32_loses_is_no_mistake_and_what_float64_finds_is_one(precision):
    policy, asked = policy_of("llama", precision), []
    weights = {name: w.clone() for name, w in policy.model.state_dict().items()}

    def gap(in_float64):
        asked.append(policy.model.dtype)
        return in_float64 if asked[-1] == torch.float64 else 3e-3

    self_test.compare(policy, "path", lambda: gap(1e-9), "cure")
    assert asked[:2] == [torch.float32, torch.float64]
    with pytest.raises(ConfigError, match=r"by its path .* differ by 0.3 nats"):
        self_test.compare(policy, "path", lambda: gap(0.3), "cure")
    found = policy.model.state_dict()
    assert all(found[n].dtype == w.dtype and torch.equal(found[n], w) for n, w in weights.items())
    policy.model.double()
    with self_test.trial(policy, "decoding"):
        assert max(self_test.figures(policy).values()) < 1e-5
        assert decoding_check.difference(policy) < 1e-5


def test_no_state_that_decides_results_changes():
    policy = policy_of("gpt2", resid_pdrop=0.1)
    policy.model.train()
    policy.model.transformer.h[0].eval()
    weights = {name: w.clone() for name, w in policy.model.state_dict().items()}
    modes = [module.training for module in policy.model.modules()]
    numbers = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    policy.test()
    policy.set_padding_free(True)
    HFCompleter(policy)
    assert torch.equal(torch.get_rng_state(), numbers[0])
    assert random.getstate() == numbers[1]
    assert np.random.get_state()[1].tolist() == numbers[2]  # noqa: NPY002
    assert [module.training for module in policy.model.modules()] == modes
    assert all(torch.equal(w, weights[name]) for name, w in policy.model.state_dict().items())
    assert all(w.grad is None and w.requires_grad for w in policy.model.parameters())
    assert policy.precision == "float32"


def test_decoding_is_compared_once_for_each_policy(monkeypatch):
    policy, calls = policy_of("llama"), []
    usual = decoding_check.difference
    counted = lambda one, **named: calls.append(one) or usual(one, **named)
    monkeypatch.setattr(decoding_check, "difference", counted)
    HFCompleter(policy)
    HFCompleter(policy)
    assert calls == [policy]


def test_sequences_are_the_same_each_time_and_have_no_special_tokens():
    policy = policy_of("llama")
    rows = self_test.sequences(policy)
    assert rows == self_test.sequences(policy)
    assert len(set(map(len, rows))) == len(rows)
    assert rows[0][:4] == rows[-1][:4]
    assert not set(sum(rows, ())) & set(any_model.TOKENIZER.added_tokens_decoder)
    assert max(map(max, rows)) < len(any_model.TOKENIZER)


# Miniatures.


def test_a_miniature_has_all_kinds_of_layers_and_is_small():
    from transformers import AutoConfig

    given = AutoConfig.for_model("gemma3_text", hidden_size=256, head_dim=64)
    (small,) = small_networks(given)
    own = small.model.config
    assert set(own.layer_types) == set(given.layer_types)
    assert own.num_hidden_layers < given.num_hidden_layers
    assert own.sliding_window < max(map(len, self_test.sequences(small)))
    assert sum(w.numel() for w in small.model.parameters()) < 40e6
    assert type(small.model).__name__ == "Gemma3ForCausalLM"
    state = torch.get_rng_state()
    small_networks(AutoConfig.for_model("llama"))
    assert torch.equal(torch.get_rng_state(), state)
    small.test()


def test_what_cannot_be_made_small_has_no_miniature():
    from transformers import AutoConfig

    assert small_networks(AutoConfig.for_model("qwen2_5_vl")) == []
