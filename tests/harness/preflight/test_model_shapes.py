"""Shapes of models against those of transformers' own classes, of every family."""

import json

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, DynamicCache, GPT2Config
from transformers import AutoModelForImageTextToText as ImageText

from harness import config as configs
from harness.model import adapters
from harness.model.learning_mode import checkpoint_activations
from harness.preflight import activations, defaults, memory, model_shapes, passes
from harness.preflight.machine import Machine, Precision
from harness.types.errors import ConfigError
from tests.harness.tiny_families import EXPERTS, FAMILIES, LINEAR, SEEING, SEEN

SIZE = {
    "vocab_size": 500,
    "hidden_size": 112,
    "intermediate_size": 208,
    "num_hidden_layers": 4,
    "num_attention_heads": 7,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 512,
}
"""No weight has an activation's shape: autocast's copies of weights are told by their shape."""
ROTATED = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}
TEXT = {
    **{family: own | {"num_hidden_layers": 4} for family, own in FAMILIES.items()},
    "gemma3_text": {
        "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
    },
    **{f"{family}_text": {"rope_parameters": ROTATED} for family in SEEING},
}
MIXED, FULL, HALF = Precision(4, 2), Precision(4, 4), Precision(2, 2)


def described(family, **changes):
    if family in SEEING:
        changes |= {"rope_parameters": ROTATED}
        return AutoConfig.for_model(
            family,
            text_config=SIZE | changes,
            vision_config=SEEN | {"out_hidden_size": 112},
            tie_word_embeddings=True,
        )
    return AutoConfig.for_model(family, **SIZE | TEXT[family] | changes)


def model_of(config):
    sees = hasattr(config, "vision_config")
    return (ImageText if sees else AutoModelForCausalLM).from_config(config)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", 494_032_768),
        ("Qwen/Qwen2.5-1.5B-Instruct", 1_543_714_304),
        ("Qwen/Qwen2.5-3B-Instruct", 3_085_938_688),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("Qwen/Qwen2.5-32B-Instruct", 32_763_876_352),
        ("Qwen/Qwen2.5-VL-3B-Instruct", 3_754_622_976),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 8_292_166_656),
        ("Qwen/Qwen3-0.6B", 596_049_920),
        ("Qwen/Qwen3-1.7B", 1_720_574_976),
        ("Qwen/Qwen3-4B", 4_022_468_096),
        ("Qwen/Qwen3-8B", 8_190_735_360),
        ("Qwen/Qwen3-14B", 14_768_307_200),
        ("Qwen/Qwen3-32B", 32_762_123_264),
        ("Qwen/Qwen3-30B-A3B", 30_532_122_624),
        ("Qwen/Qwen3-VL-4B-Instruct", 4_437_815_808),
        ("Qwen/Qwen3-VL-8B-Instruct", 8_767_123_696),
        ("Qwen/Qwen3.5-9B", 8_953_803_264),
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        ("meta-llama/Llama-3.2-1B-Instruct", 1_235_814_400),
        ("meta-llama/Llama-3.2-3B-Instruct", 3_212_749_824),
        ("meta-llama/Llama-3.3-70B-Instruct", 70_553_706_496),
        ("google/gemma-3-1b-it", 999_885_952),
        ("google/gemma-3-4b-it", 4_300_079_472),
        ("google/gemma-3-12b-it", 12_187_325_040),
    ],
)
def test_known_models_have_the_published_parameters(model, parameters):
    """The numbers that the hub shows, but for Qwen3.5, whose vision model is not trained."""
    assert model in model_shapes.KNOWN
    assert model_shapes.shape_of(configs.PolicyConfig(model=model)).parameters == parameters


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", [*FAMILIES, *SEEING])
def test_a_shape_has_the_models_parameters(family, tied, tmp_path):
    config = described(family, tie_word_embeddings=tied)
    config.save_pretrained(tmp_path)
    model = model_of(config)
    shape = model_shapes.shape_of(configs.PolicyConfig(model=str(tmp_path)))
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    attention = next(m for m in model.modules() if hasattr(m, "k_proj"))
    assert shape.keys == attention.k_proj.out_features == attention.v_proj.out_features


@pytest.mark.parametrize("targets", [("all-linear",), ("q_proj", "v_proj")])
@pytest.mark.parametrize("family", [*FAMILIES, *SEEING])
def test_adapters_are_counted_as_peft_makes_them(targets, family):
    config = described(family)
    shape, model = model_shapes.measure(config), model_of(config)
    lora = configs.LoraConfig(rank=4, targets=targets)
    adapters.add(model, lora, "nowhere", seed=1)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert shape.adapter_parameters(lora) == trained


def kept_by(model, precision, tokens):
    """Return the bytes that a forward pass of real numbers keeps of one token."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    shapes = {p.shape[-2:] for p in model.parameters()}
    shapes |= {shape[::-1] for shape in shapes}
    kept, alive = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        copied = tensor.dtype == torch.bfloat16 and tensor.shape[-2:] in shapes
        if storage.data_ptr() not in weights and not (precision is MIXED and copied):
            kept[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=precision is MIXED),
    ):
        model(input_ids=tokens, use_cache=False)
    return sum(kept.values()) / tokens.numel()


def run(checkpointing):
    config = configs.load("corridor-tiny")
    policy = configs.replace(config.policy, gradient_checkpointing=checkpointing)
    return configs.replace(config, policy=policy)


@pytest.mark.parametrize(
    ("family", "precision"), [*((f, p) for f in TEXT for p in (FULL, MIXED)), ("qwen3", HALF)]
)
def test_activations_are_those_measured(family, precision):
    config = described(family)
    shape = model_shapes.measure(config) if family in FAMILIES else None
    text = shape.text if shape else json.dumps(config.to_dict())
    dtype = torch.bfloat16 if precision is HALF else torch.float32
    model = AutoModel.from_config(config, dtype=dtype).train()
    found = activations.count(text, precision.weight, precision.compute)
    layers, rest = found.layers, found.rest
    measured = kept_by(model, precision, torch.zeros(2, activations.TOKENS, dtype=torch.long))
    assert len(layers) == 4
    assert sum(layers) + rest == pytest.approx(measured, rel=0.05)
    if shape:
        assert passes.kept_bytes(run(False), shape, found) == sum(layers)


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama", "gemma3_text", "qwen3_5_text"])
def test_checkpointing_keeps_the_inputs_of_layers(family):
    """The layer that is whole in the backward pass alone comes on top."""
    config = described(family)
    shape, model = model_shapes.measure(config), AutoModel.from_config(config).train()
    checkpoint_activations(model)
    found = activations.count(shape.text, 4, 4)
    measured = kept_by(model, FULL, torch.zeros(2, 64, dtype=torch.long))
    counted = passes.kept_bytes(run(True), shape, found) + found.rest
    assert counted == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize("tokens", [10, 400])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_cache_is_that_of_generation(family, tokens):
    config = described(family, sliding_window=128)
    shape, model = model_shapes.measure(config), AutoModel.from_config(config)
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=torch.zeros(1, tokens, dtype=torch.long), past_key_values=cache)
    held = [value for layer in cache.layers for value in vars(layer).values()]
    held += [one for value in held if isinstance(value, list | dict) for one in parts(value)]
    measured = sum(t.numel() * t.element_size() for t in held if torch.is_tensor(t))
    assert shape.cache_bytes(tokens, 4) == pytest.approx(measured, rel=0.05)
    every = 2 * len(shape.windows) * shape.keys * 4 * tokens + shape.state
    assert shape.cache_bytes(tokens, 4, whole=True) == every


def parts(several):
    return several.values() if isinstance(several, dict) else several


def test_an_architecture_of_another_family_is_measured(tmp_path):
    GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=100).save_pretrained(tmp_path)
    shape = model_shapes.shape_of(configs.PolicyConfig(model=str(tmp_path)))
    assert (shape.hidden, shape.layers, shape.keys) == (32, 2, 32)
    assert sum(activations.count(shape.text, 4, 4).layers) > 0


def test_an_architecture_that_needs_numbers_has_a_plan_without_activations(monkeypatch):
    def fails(*_):
        raise RuntimeError("data-dependent")

    monkeypatch.setattr(passes, "count", fails)
    config = defaults.resolve(run(False))
    held = memory.memory(config, model_shapes.shape_of(config.policy), Machine("cpu"))
    assert "activations: cannot be counted for this architecture" in {one.name for one in held}


def test_experts_count_by_those_that_a_token_passes_through():
    def bytes_of(**changes):
        shape = model_shapes.measure(described("qwen3_moe", **changes))
        return sum(activations.count(shape.text, 4, 4).layers)

    assert bytes_of(num_experts=8) == pytest.approx(bytes_of(), rel=0.05)
    assert (
        bytes_of(num_experts_per_tok=4) > bytes_of() + 4 * 4 * 2 * EXPERTS["moe_intermediate_size"]
    )


def test_a_state_of_linear_attention_does_not_grow():
    shape = model_shapes.measure(described("qwen3_5_text"))
    growth = shape.cache_bytes(300, 4) - shape.cache_bytes(200, 4)
    assert growth == 100 * 2 * 2 * shape.keys * 4, "two of the four layers keep keys"
    assert shape.state > 2 * 4 * LINEAR["linear_num_value_heads"] * LINEAR["linear_key_head_dim"]


@pytest.mark.parametrize(
    "content", ['{"model_type": "unheard-of"}', "{}", '{"model_type": "gpt2", "n_embd": "wide"}']
)
def test_a_config_that_transformers_does_not_know_is_refused_in_one_line(content, tmp_path):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigError, match="cannot be read from its config.json") as caught:
        model_shapes.shape_of(configs.PolicyConfig(model=str(tmp_path)))
    assert len(str(caught.value)) <= 300
    assert "\n" not in str(caught.value)


def test_a_model_that_nobody_knows_is_named():
    with pytest.raises(ConfigError, match=r"'some/where' is not on this machine.*hf download"):
        model_shapes.shape_of(configs.PolicyConfig(model="some/where"))
