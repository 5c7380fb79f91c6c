"""The dry run: memory against measured bytes, what is missing."""

import json
import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from transformers import AutoConfig

from harness import config as configs
from harness.cli.main import main
from harness.model import hub, tiny
from harness.model.packing import num_mini_batches
from harness.preflight import (
    defaults,
    memory,
    missing,
    model_shapes,
    planning,
    shared_prefixes,
    step_time,
)
from harness.preflight.machine import Machine, Precision
from harness.training.optimizer import make_optimizer
from harness.types.errors import ConfigError

WORDS = " ".join(f"{first}{second}" for first in "abcdefgh" for second in "stuvwxyz")
"""Enough of them for a vocabulary of 300."""


def tiny_run(**policy):
    config = defaults.resolve(configs.load("corridor-tiny"))
    return configs.replace(config, policy=configs.replace(config.policy, **policy))


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_weights_gradients_and_moments_are_those_measured(precision):
    size = configs.TinyConfig(layers=2, hidden=64, heads=4, feed_forward=96, vocabulary=300)
    config = tiny_run(precision=precision, tiny=size)
    model = tiny.make_model(size, tiny.make_tokenizer([WORDS], 300), 0)
    model = model.to(getattr(torch, precision))
    model(input_ids=torch.tensor([[1, 2, 3]])).logits.float().sum().backward()
    optimizer = make_optimizer(model, config.optimizer)
    optimizer.step()
    made = configs.replace(size, vocabulary=model.config.vocab_size)
    shape = model_shapes.shape_of(configs.replace(config.policy, tiny=made))
    held = {h.name: h.size for h in memory.memory(config, shape, Machine("cpu"))}
    parameters = list(model.parameters())
    assert held["policy: weights"] == bytes_of(parameters)
    assert held["policy: gradients"] == bytes_of(p.grad for p in parameters)
    moments = [state[n] for state in optimizer.state.values() for n in ("exp_avg", "exp_avg_sq")]
    assert held["policy: AdamW"] == bytes_of(moments)
    in_bytes = Precision.of(config, Machine("cpu"), shape.parameters)
    kept = memory.checkpoint_bytes(config, shape, in_bytes)
    assert kept == bytes_of(parameters) + bytes_of(moments)


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch has Muon from 2.9 on")
def test_muon_keeps_half_of_adamws_moments_and_an_average_is_the_weights_again():
    size = configs.TinyConfig(layers=2, hidden=64, heads=4, feed_forward=96, vocabulary=300)
    plain = tiny_run(precision="float32", tiny=size)
    muon = configs.replace(plain, optimizer=configs.OptimizerConfig(name="muon"))
    model = tiny.make_model(size, tiny.make_tokenizer([WORDS], 300), 0)
    model(input_ids=torch.tensor([[1, 2, 3]])).logits.sum().backward()
    optimizer = make_optimizer(model, muon.optimizer)
    optimizer.step()
    kept = bytes_of(
        value for one in optimizer.state.values() for key, value in one.items() if key != "step"
    )
    made = configs.replace(size, vocabulary=model.config.vocab_size)
    shape = model_shapes.shape_of(configs.replace(plain.policy, tiny=made))
    alone = Machine("cpu")
    held = {h.name: h.size for h in memory.memory(muon, shape, alone)}
    weights = bytes_of(model.parameters())
    assert held["policy: Muon and AdamW"] == pytest.approx(kept, rel=0.02)
    assert weights < kept < 1.5 * weights
    precision = Precision.of(muon, alone, shape.parameters)
    assert memory.checkpoint_bytes(muon, shape, precision) == pytest.approx(
        weights + kept, rel=0.02
    )
    averaged = configs.replace(plain, policy=configs.replace(plain.policy, ema=0.9))
    held = {h.name: h.size for h in memory.memory(averaged, shape, alone)}
    assert held["policy: average of the weights"] == weights
    assert memory.checkpoint_bytes(averaged, shape, precision) == 5 * weights
    lora = configs.LoraConfig(rank=4)
    adapted = configs.replace(muon, policy=configs.replace(muon.policy, lora=lora))
    held = {h.name: h.size for h in memory.memory(adapted, shape, alone)}
    assert held["policy: Muon and AdamW"] == held["policy: adapters"]


def test_several_gpus_share_what_learns_and_adapters_leave_the_rest():
    config = defaults.resolve(configs.load("webshop-oprl-7b"))
    shape = model_shapes.shape_of(config.policy)
    one, eight = (
        {h.name: h.size for h in memory.memory(config, shape, Machine("cuda", n))} for n in (1, 8)
    )
    for name in ("policy: weights", "policy: AdamW", "process reward model: AdamW"):
        assert one[name] == 8 * eight[name]
    assert one["vLLM: weights"] == eight["vLLM: weights"] == 2 * shape.parameters
    assert "reference policy" not in one
    adapted = configs.replace(
        config, policy=configs.replace(config.policy, lora=configs.LoraConfig(rank=8))
    )
    less = memory.memory(adapted, shape, Machine("cuda"))
    assert memory.peak(less) < memory.peak(memory.memory(config, shape, Machine("cuda")))
    frozen = {h.name: h.size for h in less if "frozen" in h.name}
    assert frozen == {"policy: frozen weights": 4 * shape.parameters}


def test_a_reward_model_that_reads_is_counted_by_its_own_size_and_must_be_here():
    planned = planning.plan(configs.load("visual-sokoban-oprl-7b"), 8)
    assert "process reward model: a model of 7.62 B parameters that learns" in planned.text()
    assert any("the model Qwen/Qwen2.5-7B-Instruct is not on" in one for one in planned.missing)
    copied = ["method.annotators.process_reward={}", "policy.lora.rank=8"]
    sizes = []
    for changes in (copied, [*copied, "method.annotators.process_reward.model=tiny"]):
        config = defaults.resolve(configs.load("visual-sokoban-oprl-7b", changes))
        held = memory.memory(config, model_shapes.shape_of(config.policy), Machine("cuda"))
        sizes.append({one.name: one.size for one in held})
    assert "process reward model: adapters" in sizes[0]
    tiny = sizes[1]["process reward model: weights"]
    assert 0 < tiny < 1e-3 * sizes[0]["policy: frozen weights"]


def test_replicas_share_less_and_must_divide_the_processes():
    config = configs.load("alfworld-gigpo-1.5b", ["policy.replicas=2"])
    resolved = defaults.resolve(config)
    shape = model_shapes.shape_of(config.policy)
    for size, share in ((4, 1 / 2), (2, 1)):
        held = memory.memory(resolved, shape, Machine("cuda", size))
        (weights,) = [one.size for one in held if one.name == "policy: weights"]
        assert weights == pytest.approx(4 * shape.parameters * share)
    refused = "policy.replicas is 2, which does not divide the 3 processes"
    assert any(refused in one for one in planning.plan(config, 3).missing)
    assert not any("replicas" in one for one in planning.plan(config, 4).missing)


def test_processes_that_share_rows_hold_parts_of_the_activations():
    learning = {}
    for size in (1, 4):
        config = configs.load("alfworld-gigpo-7b", [f"policy.sequence_parallel={size}"])
        shape = model_shapes.shape_of(config.policy)
        held = memory.memory(defaults.resolve(config), shape, Machine("cuda", 8))
        learning[size] = {one.name: one.size for one in held}
    for name in ("activations", "activations of a layer, gradients"):
        assert learning[4][name] == pytest.approx(learning[1][name] / 4, rel=1e-3)
    assert learning[4]["policy: weights"] == learning[1]["policy: weights"]
    config = configs.load("alfworld-gigpo-7b", ["policy.sequence_parallel=8"])  # of 28 heads
    for processes, reason in ((8, "28 attention heads, which cannot be split over 8"), (4, "is 8")):
        assert any(reason in one for one in planning.plan(config, processes).missing)


def test_shared_prefixes_spare_tokens_and_take_keys_of_each_sequence():
    plain, shared = (
        defaults.resolve(configs.load("alfworld-gigpo-7b", [f"optimizer.packing={given}"]))
        for given in ("packed", "shared")
    )
    shape, machine = model_shapes.shape_of(plain.policy), Machine("cuda", 8)
    spent = [step_time.step_time(c, shape, machine, 1000, 25).update for c in (plain, shared)]
    assert 0.78 <= spent[1] / spent[0] < 0.79  # the output layer's part stays
    held = {one.name: one.size for one in memory.memory(shared, shape, machine)}
    tokens = shared.optimizer.micro_batch_tokens
    assert held["keys and values of each sequence"] == pytest.approx(
        2 * tokens / 0.78 * 512 * 2 * (1 if shared.policy.gradient_checkpointing else 28)
    )
    text = planning.plan(configs.load("alfworld-gigpo-7b", ["optimizer.packing='shared'"]), 8)
    assert "of them pass through the model, equal beginnings once (as measured" in text.text()
    other = defaults.resolve(configs.load("corridor-tiny", ["optimizer.packing='shared'"]))
    assert shared_prefixes.tokens_left(other) == 1
    assert shared_prefixes.tokens_left(plain) == 1


def test_mixed_precision_that_a_cpu_takes_by_itself_is_told(monkeypatch, tmp_path):
    told = "mixed precision (this CPU computes in bfloat16)"
    path = "harness.model.weights.usual_precision.has_bfloat16"
    size = configs.TinyConfig(hidden=1024, layers=4, feed_forward=2048)
    for capable, precision, shown in (
        (True, None, True),
        (True, "mixed", False),
        (False, None, False),
    ):
        monkeypatch.setattr(path, lambda capable=capable: capable)
        config = tiny_run(tiny=size, precision=precision, device="cpu")
        assert (told in planning.header(config, tmp_path)) == shown
    small = tiny_run(device="cpu")
    monkeypatch.setattr(path, lambda: True)
    assert told not in planning.header(small, tmp_path)


def test_shares_of_prefixes_are_those_of_the_documentation():
    page = Path(__file__).parents[3].joinpath("docs/training.md").read_text()
    for (name, context), shares in shared_prefixes._LEFT.items():
        (row,) = re.findall(rf"^\| {name} \| (.* %\)) \|$", page, re.M)
        cells = row.split(" | ")[::2]
        cell = cells[("window", "transcript").index(context)]
        assert [int(n) / 100 for n in re.findall(r"\d+", cell)] == list(shares)


def test_an_engine_that_sleeps_is_not_there_while_the_policy_learns():
    config = defaults.resolve(configs.load("alfworld-grpo-1.5b"))
    shape, machine = model_shapes.shape_of(config.policy), Machine("cuda", 1, 80 * 10**9)
    held = memory.memory(config, shape, machine)
    (engine,) = [h for h in held if h.name.startswith("vLLM")]
    assert (engine.size, engine.when) == (40e9, "playing")
    awake = configs.replace(config, rollout=configs.replace(config.rollout, sleep=False))
    assert memory.peak(memory.memory(awake, shape, machine)) > memory.peak(held)
    usual = configs.replace(config, rollout=configs.replace(config.rollout, engine={}))
    (engine,) = [h for h in memory.memory(usual, shape, machine) if h.name.startswith("vLLM")]
    assert engine.size == pytest.approx(32e9), "what vllm_generators gives an engine"


def test_rows_of_a_step_are_turns_or_transcripts():
    window = defaults.resolve(configs.load("alfworld-gigpo-1.5b"))
    assert planning.rows(window, 50) == planning.Range(128, 3200, 6400)
    assert num_mini_batches(window.optimizer, 3200) == 13
    assert num_mini_batches(window.optimizer, 256) == 1
    chat = defaults.resolve(configs.load("appworld-gvpo-32b"))
    assert planning.rows(chat, 40) == planning.Range(256, 256, 256)
    assert num_mini_batches(chat.optimizer, 256) == 8
    assert num_mini_batches(configs.replace(chat.optimizer, mini_batch_size=None), 3) == 3


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
    result = dry_run("sotopia-oprl-8b", "--gpus", "8", "--set", "log.outputs=['wandb']")
    assert result.exit_code == 2
    for line in (
        "8.03 B parameters",
        "of each of 8 GPUs",
        "agentgyms data import sotopia",
        "hf download meta-llama/Llama-3.1-8B-Instruct",
        "export OPENAI_API_KEY",
        "128 rows (transcripts)",
        "2 optimizer steps",
        "process reward model: a copy that learns",
    ):
        assert line in result.output, line
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


def test_the_plan_says_at_how_many_episodes_and_groups_collecting_ends():
    told = dry_run("appworld-gvpo-7b", "--gpus", "8", "--gpu-memory", "80").output
    enough = " ".join(told.split())
    assert "enough are 6 of the 8 episodes of a group and 30 of the 32 groups of all 8" in enough


def test_a_plan_for_gpus_of_a_size_says_what_takes_most_and_how_many_are_enough():
    small = dry_run("alfworld-scpo-7b", "--gpus", "2", "--gpu-memory", "80").output
    (line,) = [line for line in small.splitlines() if "of memory are needed" in line]
    assert (
        "and each GPU has 80, most for vLLM: 50% of the GPU (40 GB) and policy: AdamW (30" in line
    )
    assert "it fits on 4 such GPUs" in line
    assert len(line) <= 300
    enough = dry_run("alfworld-scpo-7b", "--gpus", "8", "--gpu-memory", "80").output
    assert "of memory are needed" not in enough
    assert "main memory: 30.5 GB while the model is read, 8.6 GB while a checkpoint" in enough
    never = dry_run("alfworld-scpo-7b", "--gpu-memory", "8").output
    assert "it fits on no number of them up to 64" in never
    result = CliRunner().invoke(main, ["train", "corridor-tiny", "--gpu-memory", "80"])
    assert "--gpu-memory is for --dry-run" in result.output


def test_a_checkpoint_of_adapters_has_the_size_of_its_base(policy, tmp_path):
    """It has no config.json; its base may be a folder, or a model of the hub that is not here."""
    policy.save(tmp_path / "base")
    adapted = policy.frozen_copy()
    for base in (str(tmp_path / "base"), "Qwen/Qwen2.5-7B-Instruct"):
        folder = tmp_path / f"adapters-{len(base)}"
        if not adapted.is_adapted:
            adapted.adapt(configs.LoraConfig(rank=2), base, seed=1)
        adapted.save(folder)
        described = json.loads((folder / hub.ADAPTERS).read_text())
        described["base_model_name_or_path"] = base
        (folder / hub.ADAPTERS).write_text(json.dumps(described))
        wanted = configs.load("corridor-tiny").policy
        one, other = (configs.replace(wanted, model=str(model)) for model in (folder, base))
        assert model_shapes.shape_of(one) == model_shapes.shape_of(other)
        own = f"policy.model='{folder}'"
        told = dry_run("corridor-tiny", "--set", own, "--set", "policy.lora.rank=2").output
        missing = f"the model {base} is not on this machine, run: hf download {base}"
        assert (missing in told) == (base == "Qwen/Qwen2.5-7B-Instruct"), told
        assert str(folder) + " is not on this machine" not in told


def test_what_is_offloaded_is_planned_for_main_memory():
    run = ("appworld-gvpo-32b", "--gpus", "8", "--gpu-memory", "80")
    assert "GB of memory are needed" in dry_run(*run).output
    weights = 4 * 32.763876352
    for offload, held in (("optimizer", 2 * weights), ("parameters", 4 * weights)):
        planned = dry_run(*run, "--set", f"policy.offload={offload}").output
        assert "GB of memory are needed" not in planned
        assert f"{held:.1f} GB of what is offloaded" in " ".join(planned.split())
        assert "policy: AdamW" not in planned
    assert "policy: weights" not in planned
    alone = dry_run("alfworld-scpo-7b", "--set", "policy.offload=parameters").output
    assert "policy.offload is 'parameters', which needs several processes" in alone


def test_seconds_of_a_step_are_the_operations_at_the_assumed_share_of_the_peak():
    config = defaults.resolve(
        configs.load("alfworld-scpo-7b", ["agent.max_context=16384", "optimizer.epochs=1"])
    )
    shape = model_shapes.shape_of(config.policy)
    one, eight = (step_time.step_time(config, shape, Machine("cuda", n), 6400, 50) for n in (1, 8))
    assert one.update == pytest.approx(8 * eight.update)
    assert one.decode == eight.decode, "each has its own copy"
    # 52 million tokens in rows of 8,192, which pass through 6.5 billion weights of layers.
    forward = 2 * 6400 * 8192 * 6.53e9 / (8 * 0.4 * 989e12)
    assert 1 < eight.rescore / forward < 1.2, "with attention and the output layer"
    assert eight.update == pytest.approx(4 * eight.rescore), (
        "three, and one again for checkpointing"
    )
    plain = configs.replace(
        config, policy=configs.replace(config.policy, gradient_checkpointing=False)
    )
    less = step_time.step_time(plain, shape, Machine("cuda", 8), 6400, 50)
    assert less.update == pytest.approx(3 * eight.rescore)


def test_a_plan_with_windows_tells_what_transcripts_would_cost():
    config = defaults.resolve(
        configs.load("alfworld-scpo-7b", ["agent.max_context=4096", "agent.max_tokens=500"])
    )
    shape = model_shapes.shape_of(config.policy)
    assert step_time.transcript_tokens(config, shape, 25) == 2048 + 24 * 500
    assert step_time.transcript_tokens(config, shape, 1e4) == shape.max_length
    eight = Machine("cuda", 8)
    windows = step_time.step_time(config, shape, eight, 128 * 25, 25)
    transcripts = step_time.transcript_update(config, shape, eight, 25)
    tokens = 25 * 2048 / (2048 + 24 * 500)
    assert 0.8 * tokens < windows.update / transcripts < tokens, "long rows attend to more"
    said = dry_run("alfworld-scpo-7b", "--gpus", "8").output
    assert "as transcripts about 1,736,704 tokens" in said
    assert "with agent.context = 'transcript' the update would take 36 s" in said
    whole = dry_run("alfworld-scpo-7b", "--gpus", "8", "--set", "agent.context=transcript").output
    assert "transcript" in whole
    assert "as transcripts" not in whole
    assert "the update would take" not in whole


def test_a_wrong_setting_has_the_same_message_as_when_the_run_starts():
    result = dry_run("corridor-tiny", "--set", "eval.split=nowhere")
    assert (result.exit_code, "no split 'nowhere'" in result.output) == (2, True)
    result = dry_run("corridor-tiny", "--set", "method.name=gippo")
    assert isinstance(result.exception, ConfigError), "there is no plan without a method"
    result = CliRunner().invoke(main, ["train", "corridor-tiny", "--gpus", "2"])
    assert "--gpus is for --dry-run" in result.output


@pytest.mark.parametrize(("kind", "drops"), [("gpt2", True), ("qwen2", False)])
def test_a_run_says_at_its_beginning_that_dropout_is_off(tmp_path, kind, drops):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    AutoConfig.for_model(kind, **sizes).save_pretrained(tmp_path)
    config = tiny_run(model=str(tmp_path))
    for told in (planning.header(config, tmp_path), planning.plan(config).text()):
        assert ("its own dropout is off" in told.replace("\n" + " " * 15, " ")) == drops


@pytest.mark.parametrize("gigabytes", [1, 2, 4])
@pytest.mark.parametrize("more", [(), ("rollout.max_live=32",), ("policy.lora.rank=4",)])
def test_a_refusal_for_memory_proposes_values_that_fit(gigabytes, more):
    tiny = "policy.tiny={layers=8, hidden=512, heads=8, feed_forward=1024, max_length=16384}"
    given = [tiny, "policy.device=cpu", "policy.precision=float32", *more]
    config = defaults.resolve(configs.load("corridor-tiny", given))
    shape = model_shapes.shape_of(config.policy)
    machine = Machine("cpu", memory=gigabytes * 10**9)
    (refusal,) = missing._memory(config, shape, machine)
    _, _, line = refusal.partition("it fits with\n  ")
    words = line.split()
    assert words[::2] == ["--set"] * (len(words) // 2)
    assert words
    followed = defaults.resolve(configs.load("corridor-tiny", [*given, *words[1::2]]))
    assert not list(missing._memory(followed, shape, machine))
    for left_out in words[1::2]:  # each of them is needed
        fewer = [word for word in words[1::2] if word != left_out]
        short = defaults.resolve(configs.load("corridor-tiny", [*given, *fewer]))
        assert list(missing._memory(short, shape, machine)), left_out


def test_a_context_that_a_recipe_sets_is_not_proposed_shorter():
    tiny = "policy.tiny={layers=8, hidden=512, heads=8, feed_forward=1024, max_length=16384}"
    own = [tiny, "policy.device=cpu", "policy.precision=float32", "agent.max_context=8000"]
    config = defaults.resolve(configs.load("corridor-tiny", own))
    machine = Machine("cpu", memory=4 * 10**9)
    values = missing.fitting(config, model_shapes.shape_of(config.policy), machine)
    assert values
    assert "agent.max_context" not in values


def test_where_nothing_fits_the_settings_are_named():
    config = defaults.resolve(configs.load("corridor-tiny", ["policy.device=cpu"]))
    (refusal,) = missing._memory(
        config, model_shapes.shape_of(config.policy), Machine("cpu", memory=10**5)
    )
    assert "lower it by policy.lora.rank, a smaller optimizer.micro_batch_tokens" in refusal
