"""The dry run: shapes against real models, memory against measured bytes, what is missing."""

from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    LlamaConfig,
    Qwen2_5_VLConfig,
    Qwen2Config,
)

from harness import adapters, footprint, planning, settings, shapes, tiny
from harness import config as configs
from harness.cli import main
from harness.errors import ConfigError
from harness.footprint import Machine, Numbers
from harness.lora import LoraConfig
from harness.optimizing import make_optimizer, num_parts


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", 0.494),
        ("Qwen/Qwen2.5-1.5B-Instruct", 1.544),
        ("Qwen/Qwen2.5-3B-Instruct", 3.086),
        ("Qwen/Qwen2.5-7B-Instruct", 7.616),
        ("Qwen/Qwen2.5-32B-Instruct", 32.764),
        ("Qwen/Qwen2.5-VL-3B-Instruct", 3.755),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 8.292),
        ("meta-llama/Llama-3.1-8B-Instruct", 8.030),
    ],
)
def test_known_models_have_the_parameters_their_cards_tell(model, billions):
    assert shapes.KNOWN[model].parameters() / 1e9 == pytest.approx(billions, abs=5e-4)


def sizes(shape):
    return {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "intermediate_size": shape.feed_forward,
        "vocab_size": shape.vocabulary,
        "tie_word_embeddings": shape.tied,
    }


DESCRIBED = {
    "qwen": Qwen2Config(**sizes(shapes.Shape(64, 3, 8, 2, 96, 500, tied=False))),
    "tied": Qwen2Config(**sizes(shapes.Shape(48, 2, 4, 4, 32, 300, tied=True))),
    "llama": LlamaConfig(**sizes(shapes.Shape(64, 2, 8, 2, 96, 500, tied=False))),
    "wide heads": LlamaConfig(**sizes(shapes.Shape(64, 2, 4, 2, 96, 500, tied=False)), head_dim=32),
    "sees": Qwen2_5_VLConfig(
        text_config=sizes(shapes.Shape(64, 2, 8, 2, 96, 500, tied=False)),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 40,
            "num_heads": 4,
            "out_hidden_size": 64,
        },
        tie_word_embeddings=False,
    ),
}


@pytest.mark.parametrize("kind", DESCRIBED)
def test_a_shape_that_is_read_has_the_models_parameters(kind, tmp_path):
    described = DESCRIBED[kind]
    described.save_pretrained(tmp_path)
    loader = AutoModelForImageTextToText if kind == "sees" else AutoModelForCausalLM
    with torch.device("meta"):
        model = loader.from_config(described)
    shape = shapes.shape_of(configs.PolicyConfig(model=str(tmp_path)))
    assert shape.parameters() == sum(p.numel() for p in model.parameters())


def test_a_model_that_nobody_knows_is_named():
    with pytest.raises(ConfigError, match=r"'some/where' is not on this machine.*hf download"):
        shapes.shape_of(configs.PolicyConfig(model="some/where"))


@pytest.mark.parametrize("targets", [("all-linear",), ("q_proj", "v_proj")])
def test_adapters_are_counted_as_peft_makes_them(targets):
    shape = shapes.read(DESCRIBED["qwen"].to_dict(), "qwen")
    model = AutoModelForCausalLM.from_config(DESCRIBED["qwen"])
    adapters.add(model, LoraConfig(rank=4, targets=targets), "nowhere", seed=1)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert shape.adapter_parameters(LoraConfig(rank=4, targets=targets)) == trained


def tiny_run(**policy):
    config = settings.resolve(configs.load("corridor-tiny"))
    return replace(config, policy=replace(config.policy, **policy))


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_weights_gradients_and_moments_are_those_measured(precision):
    size = tiny.TinyConfig(layers=2, hidden=64, heads=4, feed_forward=96, vocabulary=300)
    config = tiny_run(precision=precision, tiny=size)
    model = tiny.make_model(size, tiny.make_tokenizer(["a b c"], 300), 0)
    model = model.to(getattr(torch, precision))
    model(input_ids=torch.tensor([[1, 2, 3]])).logits.float().sum().backward()
    optimizer = make_optimizer(model.parameters(), config.optimizer)
    optimizer.step()
    shape = shapes.shape_of(config.policy)
    shape = replace(shape, vocabulary=model.config.vocab_size)
    held = {h.name: h.size for h in footprint.memory(config, shape, Machine("cpu"))}
    parameters = list(model.parameters())
    assert held["policy: weights"] == bytes_of(parameters)
    assert held["policy: gradients"] == bytes_of(p.grad for p in parameters)
    moments = [state[n] for state in optimizer.state.values() for n in ("exp_avg", "exp_avg_sq")]
    assert held["policy: AdamW"] == bytes_of(moments)
    numbers = Numbers.of(config, Machine("cpu"))
    kept = footprint.checkpoint_bytes(config, shape, numbers)
    assert kept == bytes_of(parameters) + bytes_of(moments)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("kv_heads", "feed_forward"), [(8, 256), (2, 512)])
def test_activations_are_those_measured(kv_heads, feed_forward, mixed, checkpointing):
    shape = shapes.Shape(128, 4, 8, kv_heads, feed_forward, 500, tied=True)
    model = AutoModelForCausalLM.from_config(Qwen2Config(**sizes(shape)))
    model.train()
    if checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    linear = {m.weight.shape for m in model.modules() if isinstance(m, torch.nn.Linear)}
    linear |= {size[::-1] for size in linear}
    kept, alive = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        is_copy = tensor.dtype == torch.bfloat16 and tensor.shape in linear  # autocast's
        if storage.data_ptr() not in weights and not is_copy:
            kept[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    tokens = torch.zeros(4, 60, dtype=torch.long)
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=mixed),
    ):
        model.base_model(input_ids=tokens, use_cache=False)
    numbers = Numbers(4, 2 if mixed else 4)
    told = footprint.activation_bytes(
        tiny_run(gradient_checkpointing=checkpointing), shape, numbers
    )
    if checkpointing:  # one layer is whole in the backward pass alone
        two = replace(shape, layers=2)
        both = (footprint.activation_bytes(tiny_run(), s, numbers) for s in (two, shape))
        told += (next(both) - next(both)) / 2
    assert told == pytest.approx(sum(kept.values()) / tokens.numel(), rel=0.03)


def test_several_gpus_share_what_learns_and_adapters_leave_the_rest():
    config = settings.resolve(configs.load("webshop-oprl-7b"))
    shape = shapes.shape_of(config.policy)
    one, eight = (
        {h.name: h.size for h in footprint.memory(config, shape, Machine("cuda", n))}
        for n in (1, 8)
    )
    for name in ("policy: weights", "policy: AdamW", "process reward model: AdamW"):
        assert one[name] == 8 * eight[name]
    assert one["vLLM: weights"] == eight["vLLM: weights"] == 2 * shape.parameters()
    assert "reference policy" not in one
    adapted = replace(config, policy=replace(config.policy, lora=LoraConfig(rank=8)))
    less = footprint.memory(adapted, shape, Machine("cuda"))
    assert footprint.peak(less) < footprint.peak(footprint.memory(config, shape, Machine("cuda")))
    frozen = {h.name: h.size for h in less if "frozen" in h.name}
    assert frozen == {"policy: frozen weights": 4 * shape.parameters()}


def test_an_engine_that_sleeps_is_not_there_while_the_policy_learns():
    config = settings.resolve(configs.load("alfworld-grpo-1.5b"))
    shape, machine = shapes.shape_of(config.policy), Machine("cuda", 1, 80 * 10**9)
    held = footprint.memory(config, shape, machine)
    (engine,) = [h for h in held if h.name.startswith("vLLM")]
    assert (engine.size, engine.when) == (40e9, "playing")
    awake = replace(config, rollout=replace(config.rollout, sleep=False))
    assert footprint.peak(footprint.memory(awake, shape, machine)) > footprint.peak(held)
    usual = replace(config, rollout=replace(config.rollout, engine={}))
    (engine,) = [h for h in footprint.memory(usual, shape, machine) if h.name.startswith("vLLM")]
    assert engine.size == pytest.approx(32e9), "what vllm_generators gives an engine"


def test_rows_of_a_step_are_turns_or_transcripts():
    window = settings.resolve(configs.load("alfworld-gigpo-1.5b"))
    assert planning.rows(window, 50) == planning.Range(128, 3200, 6400)
    assert num_parts(window.optimizer, 3200) == 13
    assert num_parts(window.optimizer, 256) == 1
    chat = settings.resolve(configs.load("appworld-gvpo-32b"))
    assert planning.rows(chat, 40) == planning.Range(256, 256, 256)
    assert num_parts(chat.optimizer, 256) == 8
    assert num_parts(replace(chat.optimizer, mini_batch_size=None), 3) == 3


def dry_run(*words):
    return CliRunner().invoke(main, ["train", *words, "--dry-run"])


def test_a_run_that_could_start_ends_with_status_0():
    result = dry_run("corridor-tiny")
    assert result.exit_code == 0, result.output
    assert "nothing is missing" in result.output
    assert "train (40 tasks)" in result.output
    assert "4 tasks x 4 = 16 episodes" in result.output
    assert max(map(len, result.output.splitlines())) <= 100


def test_a_run_that_could_not_is_planned_all_the_same(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = dry_run("sotopia-oprl-8b", "--gpus", "8", "--set", "log.wandb=nothing")
    assert result.exit_code == 2
    for told in (
        "8.03 B parameters",
        "of each of 8 GPUs",
        "agentgyms data import sotopia",
        "hf download meta-llama/Llama-3.1-8B-Instruct",
        "export OPENAI_API_KEY",
        "128 rows (transcripts)",
        "2 optimizer steps",
        "process reward model: a copy that learns",
    ):
        assert told in result.output, told
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    result = dry_run("sotopia-oprl-8b", "--gpus", "8")
    assert "its key is not set" not in result.output
    assert "secret" not in result.output


def test_an_engine_that_cannot_sleep_here_hides_no_missing_data():
    output = dry_run("sotopia-oprl-8b", "--set", "policy.device=cpu").output
    assert "rollout.sleep frees the GPU memory" in output
    assert "agentgyms data import sotopia" in output


def test_what_a_run_needs_of_this_machine(tmp_path):
    place = f"run.output='{tmp_path}'"
    folder = tmp_path / "corridor"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert "holds a run already" in dry_run("corridor-tiny", "--set", place).output
    server = ["rollout.backend=server", "rollout.urls=['http://127.0.0.1:9']"]
    output = dry_run("corridor-tiny", *(w for s in server for w in ("--set", s))).output
    assert "no server answers at http://127.0.0.1:9" in output
    huge = dry_run("corridor-tiny", "--set", "policy.tiny={layers=400, hidden=65536, heads=8}")
    assert "GB of memory are needed" in huge.output
    assert "GB of checkpoints are kept" in huge.output


def test_a_wrong_setting_is_told_like_when_the_run_starts():
    result = dry_run("corridor-tiny", "--set", "eval.split=nowhere")
    assert (result.exit_code, "no split 'nowhere'" in result.output) == (2, True)
    result = dry_run("corridor-tiny", "--set", "method.name=gippo")
    assert isinstance(result.exception, ConfigError), "there is no plan without a method"
    result = CliRunner().invoke(main, ["train", "corridor-tiny", "--gpus", "2"])
    assert "--gpus is for --dry-run" in result.output
